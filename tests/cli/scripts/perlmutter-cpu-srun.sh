#!/bin/bash
# Written by ddlrun VERSION for Perlmutter at NERSC, nodes with 128 cores.

#SBATCH --job-name=train
#SBATCH --account=m1234
#SBATCH --qos=regular
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=64
#SBATCH --time=30:00
#SBATCH --constraint=cpu
#SBATCH --output=%x-%j.out

set -o errexit

export OMP_NUM_THREADS=32

# Where local rank 0, 1, ... of each node run:
#   map_cpu:0,32,64,96
#   mask_cpu:0xffffffff,0xffffffff00000000,0xffffffff0000000000000000,0xffffffff000000000000000000000000

exec srun \
  --cpus-per-task=64 \
  --cpu-bind=mask_cpu:0xffffffff,0xffffffff00000000,0xffffffff0000000000000000,0xffffffff000000000000000000000000 \
  python train.py --epochs 3
