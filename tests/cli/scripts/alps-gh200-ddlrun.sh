#!/bin/bash
# Written by ddlrun VERSION for Alps at CSCS, nodes with four Grace-Hopper.

#SBATCH --job-name=train
#SBATCH --account=a123
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

# Where local rank 0, 1, ... of each node run, which ddlrun finds out on the node:
#   map_cpu:0,72,144,216
#   mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000

exec ddlrun -np 8 -- python train.py --epochs 3
