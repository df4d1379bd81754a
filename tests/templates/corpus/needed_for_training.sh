#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4
source venv/bin/activate
srun python train.py
#: site alps-gh200
#: 0 needed-environment
