#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=12
#SBATCH --time=2:00:00
#SBATCH --output=%x-%j.out

set -o errexit

export OMP_NUM_THREADS=12

# By these torch.distributed finds the other ranks.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
# shellcheck disable=SC2016 # each rank expands it
tell_rank='export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS" LOCAL_WORLD_SIZE=4 GROUP_RANK="$SLURM_NODEID"; exec "$@"'

exec srun \
  --cpus-per-task=12 \
  --cpu-bind=cores \
  --kill-on-bad-exit=1 \
  --wait=60 \
  --label \
  bash -c "$tell_rank" bash python train.py
