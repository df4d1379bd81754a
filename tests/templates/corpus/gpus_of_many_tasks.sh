#!/bin/bash
#SBATCH --nodes=2 --ntasks=8 --gpus-per-task=1
srun python train.py
#: 2 gpus-per-task
