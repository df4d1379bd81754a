#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4
srun --environment=train python train.py
#: site alps-gh200
#: none
