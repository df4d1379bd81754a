#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks=2
#SBATCH --gpus=8
#SBATCH --gpus-per-node=4
srun -N 8 ./a
#: 3 counts-contradict; 5 counts-contradict; 6 counts-contradict
