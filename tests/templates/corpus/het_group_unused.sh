#!/bin/bash
#SBATCH --ntasks=1 --mem=8G
#SBATCH hetjob
#SBATCH --ntasks=8 --gpus-per-node=4
srun ./server
#: 5 het-group-unused
