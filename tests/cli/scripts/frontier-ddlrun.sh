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

# Where local rank 0, 1, ... of each node run, which ddlrun finds out on the node:
#   map_cpu:1,9,17,25
#   mask_cpu:0xfe,0xfe00,0xfe0000,0xfe000000

exec ddlrun -np 8 \
  --rank-order cpu \
  -- python train.py --epochs 3
