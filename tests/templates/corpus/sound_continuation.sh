#!/bin/bash
#SBATCH --ntasks=4
srun ./a \
  --name a\ b \
  --size 1 \
  # --size 2
srun ./b \
  --quoted 'a \
  b'
cat \
  # a comment, and then another command
srun ./c
#: none
