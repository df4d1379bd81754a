#!/bin/bash
# Written by ddlrun VERSION for Perlmutter at NERSC, nodes with four A100.

#SBATCH --job-name=train
#SBATCH --account=m1234_g
#SBATCH --qos=regular
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=30:00
#SBATCH --constraint=gpu
#SBATCH --output=%x-%j.out
#SBATCH --gpu-bind=none

set -o errexit

export MPICH_OFI_NIC_POLICY=GPU
export OMP_NUM_THREADS=16

# Where local rank 0, 1, ... of each node run:
#   map_cpu:48,32,16,0
#   mask_cpu:0xffff000000000000,0xffff00000000,0xffff0000,0xffff

# Local rank 0, 1, ... sees these GPUs. All of the node stay in its cgroup, so that ranks reach each other's memory.
# shellcheck disable=SC2016 # each rank expands it
choose_gpu='gpus=(0 1 2 3); export CUDA_VISIBLE_DEVICES="${gpus[SLURM_LOCALID]}"; exec "$@"'

exec srun \
  --cpus-per-task=32 \
  --cpu-bind=mask_cpu:0xffff000000000000,0xffff00000000,0xffff0000,0xffff \
  bash -c "$choose_gpu" bash python train.py --epochs 3
