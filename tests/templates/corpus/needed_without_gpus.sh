#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=64
srun python prepare.py
#: site alps-gh200
#: none
