#!/bin/bash
# Written by ddlrun VERSION for JUWELS Booster at JSC, nodes with four A100.

#SBATCH --job-name=train
#SBATCH --account=budget
#SBATCH --partition=booster
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

export CUDA_VISIBLE_DEVICES=0,1,2,3
export NCCL_SOCKET_IFNAME=ib0
export NCCL_SOCKET_FAMILY=AF_INET
export NCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_2,mlx5_3
export NCCL_IB_TIMEOUT=18
export GLOO_SOCKET_IFNAME=ib0

# Where local rank 0, 1, ... of each node run (ddlrun plans it on the node):
#   map_cpu:18,6,42,30
#   mask_cpu:0xfc0000,0xfc0,0xfc0000000000,0xfc0000000

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 8 -- python train.py --epochs 3
