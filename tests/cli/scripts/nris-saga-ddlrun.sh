#!/bin/bash -l
# Written by ddlrun VERSION for Saga at NRIS, nodes with four P100.

#SBATCH --job-name=train
#SBATCH --account=NN1234K
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=6
#SBATCH --mem-per-cpu=8G
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

# Modules that EasyBuild made.
export EBU_USER_PREFIX=/cluster/projects/NN1234K/EasyBuild

module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 8 -- python train.py --epochs 3
