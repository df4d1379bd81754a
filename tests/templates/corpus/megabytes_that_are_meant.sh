#!/bin/bash
#SBATCH --mem=4000
srun --mem=0 ./a
#: none
