#!/bin/bash
# Written by ddlrun VERSION for Perlmutter at NERSC, nodes with four A100.

#SBATCH --job-name=train
#SBATCH --account=m1234_g
#SBATCH --qos=regular
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=128
#SBATCH --time=30
#SBATCH --constraint=gpu
#SBATCH --output=%x-%j.out
#SBATCH --gpu-bind=none

set -o errexit

export MPICH_OFI_NIC_POLICY=GPU

# Where the launchers of the nodes find each other.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# shellcheck disable=SC2034 # the command may name it
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 2 \
  --ranks-per-node 1 \
  -- torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" train.py
