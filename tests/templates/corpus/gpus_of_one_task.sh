#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-task=4 --cpus-per-task=64
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun torchrun --nproc-per-node=4 train.py
#: none
