#!/bin/bash
#SBATCH --exclusive --ntasks-per-node=2
M="mask_cpu:fe, fe00"
srun --cpu-bind=$M ./a
srun --cpu-bind=map_cpu:$(first a b), 9 ./a
#: 4 blank-in-cpu-list; 5 blank-in-cpu-list
