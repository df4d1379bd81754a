#!/bin/bash
#SBATCH --time=10:00
#SBATCH --ntasks=8 -N 2
#SBATCH -t 20:00
#SBATCH --ntasks=8
srun ./a
#: 4 option-twice
