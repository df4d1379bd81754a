#!/bin/bash
# Written by ddlrun VERSION for Alps at CSCS, nodes with four Grace-Hopper (Daint, Clariden, Santis).

#SBATCH --job-name=train
#SBATCH --account=a123
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

export NCCL_NET='AWS Libfabric'
export NCCL_PROTO=^LL128
export NCCL_CROSS_NIC=1
export NCCL_NET_GDR_LEVEL=PHB
export NCCL_NCHANNELS_PER_NET_PEER=4
export FI_MR_CACHE_MONITOR=userfaultfd
export FI_CXI_DEFAULT_CQ_SIZE=131072
export FI_CXI_DEFAULT_TX_SIZE=16384
export FI_CXI_DISABLE_HOST_REGISTER=1
export FI_CXI_RX_MATCH_MODE=software
export OMP_NUM_THREADS=72

# Where local rank 0, 1, ... of each node run:
#   map_cpu:0,72,144,216
#   mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000

# Local rank 0, 1, ... sees these GPUs. All of the node stay in its cgroup, so that ranks reach each other's memory.
# shellcheck disable=SC2016 # each rank expands it
choose_gpu='gpus=(0 1 2 3); export CUDA_VISIBLE_DEVICES="${gpus[SLURM_LOCALID]}"; exec "$@"'

exec srun \
  --mpi=pmix \
  --cpus-per-task=72 \
  --cpu-bind=mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000 \
  bash -c "$choose_gpu" bash python train.py --epochs 3
