#!/bin/bash
#SBATCH --mail-type=END, FAIL
#SBATCH --array=1, 3
#SBATCH --ntasks = 4
#SBATCH --nodes=2 nodes
#SBATCH --time= 10
#SBATCH --mail-type=END,FAIL # a remark
srun ./a
#: 2 directive-misspelt; 3 directive-misspelt; 4 directive-misspelt; 5 directive-misspelt; 6 directive-misspelt
