#!/bin/bash
# Written by ddlrun VERSION for Power9 at ZIH, TU Dresden, IBM AC922.

#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks=8
#SBATCH --mincpus=28
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=7
#SBATCH --mem=250G
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

export OMP_NUM_THREADS=7

exec srun \
  --cpus-per-task=7 \
  --cpu-bind=cores \
  --distribution=block:block \
  python train.py --epochs 3
