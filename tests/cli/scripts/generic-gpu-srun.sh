#!/bin/bash
# Written by ddlrun VERSION for a cluster with GPUs.

#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

exec srun \
  --cpu-bind=cores \
  python train.py --epochs 3
