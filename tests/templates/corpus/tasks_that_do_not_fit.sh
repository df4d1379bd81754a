#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --ntasks=16
#SBATCH --nodes=2
srun ./a
#: 4 counts-contradict
