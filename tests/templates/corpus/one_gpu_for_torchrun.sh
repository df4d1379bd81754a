#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8
export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID
srun torchrun --nnodes=2 --nproc-per-node=8 train.py
srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID torchrun --nproc-per-node=8 train.py'
srun python train.py
#: 4 launcher-sees-one-gpu; 5 launcher-sees-one-gpu
