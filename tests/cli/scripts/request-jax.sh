#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=train_jax
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=h100:8
#SBATCH --cpus-per-task=96
#SBATCH --time=4:00:00
#SBATCH --exclusive
#SBATCH --output=%x-%j.out

set -o errexit

export OMP_NUM_THREADS=96

exec srun \
  --cpus-per-task=96 \
  --cpu-bind=cores \
  python train_jax.py
