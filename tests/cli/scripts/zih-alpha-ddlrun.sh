#!/bin/bash -l
# Written by ddlrun VERSION for Alpha Centauri at ZIH, TU Dresden, nodes with eight A100.

#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=6
#SBATCH --mem=450G
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

module load release/23.04
module load Horovod/0.28.1-CUDA-11.7.0-TensorFlow-2.11.0

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 8 -- python train.py --epochs 3
