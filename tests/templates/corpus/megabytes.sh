#!/bin/bash
#SBATCH --mem=64
#SBATCH --ntasks=4
srun ./a
#: 2 mem-in-megabytes
