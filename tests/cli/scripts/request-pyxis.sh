#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --output=%x-%j.out

set -o errexit

# By these torch.distributed finds the other ranks.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
# shellcheck disable=SC2016 # each rank expands it
tell_rank='export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS" LOCAL_WORLD_SIZE=8 GROUP_RANK="$SLURM_NODEID"; exec "$@"'

exec srun \
  --cpu-bind=cores \
  '--container-image=nvcr.io#nvidia/pytorch:24.10-py3' \
  --container-mounts=/data:/data,/home/me/src:/src \
  --no-container-mount-home \
  bash -c "$tell_rank" bash python /src/train.py
