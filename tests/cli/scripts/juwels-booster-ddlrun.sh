#!/bin/bash
# Written by ddlrun VERSION for JUWELS Booster at JSC, nodes with four A100.

#SBATCH --job-name=train
#SBATCH --account=budget
#SBATCH --partition=booster
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=12
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

# Where local rank 0, 1, ... of each node run, which ddlrun finds out on the node:
#   map_cpu:18,6,42,30
#   mask_cpu:0xfc0000,0xfc0,0xfc0000000000,0xfc0000000

exec ddlrun -np 8 -- python train.py --epochs 3
