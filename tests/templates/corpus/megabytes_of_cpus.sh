#!/bin/bash
#SBATCH --mem-per-cpu=4
srun ./a
#: 2 mem-in-megabytes
