#!/bin/bash
#SBATCH -p=gpu
#SBATCH -J=train
srun -o=out ./a
#: 2 equals-after-letter; 3 equals-after-letter; 4 equals-after-letter
