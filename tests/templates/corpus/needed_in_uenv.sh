#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4
#SBATCH --uenv=pytorch --view=default
srun python train.py
#: site alps-gh200
#: none
