#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4
export CACHE=$(mktemp -d)
srun --ntasks-per-node=1 mkdir -p $CACHE
srun ./a
#: none
