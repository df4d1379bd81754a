#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4
srun torchrun --nnodes=2 --nproc-per-node=4 train.py
srun --ntasks-per-node=1 torchrun --nnodes=2 --nproc-per-node=4 train.py
srun bash -c 'torchrun --nnodes=2 --nproc-per-node=4 train.py'
srun ./select_gpu accelerate launch train.py
srun torchrun --nproc-per-node=1 --nnodes=8 train.py
#: 3 launcher-per-task; 5 launcher-per-task; 6 launcher-per-task
