#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=climate
#SBATCH --nodes=2-4
#SBATCH --ntasks-per-node=48
#SBATCH --cpus-per-task=2
#SBATCH --output=%x-%j.out
#SBATCH --error=climate.err

set -o errexit

export OMP_NUM_THREADS=2

exec srun \
  --cpus-per-task=2 \
  --cpu-bind=cores \
  ./climate
