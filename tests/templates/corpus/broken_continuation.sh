#!/bin/bash
#SBATCH --ntasks=4
srun --label \ 
  ./a
srun --label \ # with labels
  ./a
srun ./a \
  --size 1 \
  # --size 2 \
  --steps 10
#: 3 broken-continuation; 5 broken-continuation; 9 broken-continuation
