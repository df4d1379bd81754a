#!/bin/bash
#SBATCH --output=logs/%j.out --error=%j.err
mkdir -p results
cd $SCRATCH
mkdir -p logs
srun ./a
#: none
