#!/bin/bash
#SBATCH --ntasks=1
#SBATCH hetjob
#SBATCH --ntasks=8
srun --het-group=0 ./server &
srun --het-group=1 ./a
wait
#: none
