#!/bin/bash
# Written by ddlrun VERSION for Alps at CSCS, nodes with four Grace-Hopper (Daint, Clariden, Santis).

#SBATCH --job-name=train
#SBATCH --account=a123
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --time=1:00:00
#SBATCH --output=%x-%j.out

set -o errexit

export OMP_NUM_THREADS=72

# Where local rank 0, 1, ... of each node run:
#   map_cpu:0,72,144,216
#   mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000

# By these torch.distributed finds the other ranks.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
# shellcheck disable=SC2016 # each rank expands it
tell_rank='export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS" LOCAL_WORLD_SIZE=4 GROUP_RANK="$SLURM_NODEID"; exec "$@"'

exec srun \
  --mpi=pmix \
  --cpus-per-task=72 \
  --cpu-bind=mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000 \
  --environment=pytorch \
  bash -c "$tell_rank" bash python train.py
