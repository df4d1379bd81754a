#!/bin/bash -l
# Written by ddlrun VERSION.

#SBATCH --job-name=train
#SBATCH --account=project
#SBATCH --partition=gpu
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=a100:4
#SBATCH --mem=0
#SBATCH --time=12:00:00
#SBATCH --exclusive
#SBATCH --output=%x-%j.out

set -o errexit

module purge

module load CUDA/12.4

source /project/venv/bin/activate

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 16 \
  --ranks-per-node 4 \
  -x NCCL_DEBUG=WARN \
  -- python train.py --epochs 90
