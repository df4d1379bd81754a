#!/bin/bash
# Written by ddlrun VERSION for LUMI-G at CSC, HPE Cray EX235A.

#SBATCH --job-name=train
#SBATCH --account=project_465
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=56
#SBATCH --time=30
#SBATCH --output=%x-%j.out

set -o errexit

export MPICH_GPU_SUPPORT_ENABLED=1
export MPICH_OFI_NIC_POLICY=GPU
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
export NCCL_NET_GDR_LEVEL=3
export MIOPEN_USER_DB_PATH="/tmp/$USER-miopen-cache-$SLURM_JOB_ID"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/$USER-miopen-cache-$SLURM_JOB_ID"

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 1 \
  --ranks-per-node 1 \
  -- torchrun --standalone --nproc-per-node 8 train.py
