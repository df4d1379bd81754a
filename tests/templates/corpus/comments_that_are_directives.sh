#!/bin/bash
# SBATCH --mem=8G
#sbatch --exclusive
#SBTACH -n 4
 #SBATCH --time=10
srun ./a
#: 2 directive-misspelt; 3 directive-misspelt; 4 directive-misspelt; 5 directive-misspelt
