#!/bin/bash -l
# Written by ddlrun VERSION for Frontier at OLCF, for programs with RCCL.

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

module load rccl-net-plugin

export MPICH_GPU_SUPPORT_ENABLED=1
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
export NCCL_CROSS_NIC=1
export NCCL_NET_GDR_LEVEL=PHB
export HSA_FORCE_FINE_GRAIN_PCIE=1
export FI_MR_CACHE_MONITOR=kdreg2
export FI_CXI_RX_MATCH_MODE=hybrid
export FI_CXI_RDZV_PROTO=alt_read
export FI_CXI_RDZV_EAGER_SIZE=0
export FI_CXI_RDZV_THRESHOLD=0
export FI_CXI_RDZV_GET_MIN=0
export FI_CXI_DEFAULT_CQ_SIZE=131072
export FI_CXI_DEFAULT_TX_SIZE=2048
export FI_CXI_DISABLE_HOST_REGISTER=1
if [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then export NCCL_NET=OFI; else export NCCL_NET=Socket; fi
export MIOPEN_USER_DB_PATH="/tmp/$USER-miopen-cache-$SLURM_JOB_ID"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/$USER-miopen-cache-$SLURM_JOB_ID"

# Where local rank 0, 1, ... of each node run (ddlrun plans it on the node):
#   map_cpu:1,9,17,25
#   mask_cpu:0xfe,0xfe00,0xfe0000,0xfe000000

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 8 \
  --rank-order cpu \
  -- python train.py --epochs 3
