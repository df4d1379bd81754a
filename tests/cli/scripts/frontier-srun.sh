#!/bin/bash
# Written by ddlrun VERSION for Frontier at OLCF, HPE Cray EX235A.

#SBATCH --job-name=train
#SBATCH --account=ABC123
#SBATCH --partition=batch
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out
#SBATCH --network=disable_rdzv_get

set -o errexit

export OMP_NUM_THREADS=7

# Where local rank 0, 1, ... of each node run:
#   map_cpu:1,9,17,25
#   mask_cpu:0xfe,0xfe00,0xfe0000,0xfe000000

# Local rank 0, 1, ... sees these GPUs. All of the node stay in its cgroup, so that ranks reach each other's memory.
# shellcheck disable=SC2016 # each rank expands it
choose_gpu='gpus=(4 5 2 3); export ROCR_VISIBLE_DEVICES="${gpus[SLURM_LOCALID]}"; exec "$@"'

exec srun \
  --cpus-per-task=7 \
  --cpu-bind=mask_cpu:0xfe,0xfe00,0xfe0000,0xfe000000 \
  bash -c "$choose_gpu" bash python train.py --epochs 3
