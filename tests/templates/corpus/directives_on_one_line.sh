#!/bin/bash
#SBATCH --nodes=2 #SBATCH --ntasks=8
#SBATCH --time=10 # as #SBATCH says
#SBATCH --exclusive#SBATCH --qos=a
srun ./a
#: 2 directives-on-one-line; 4 directives-on-one-line
