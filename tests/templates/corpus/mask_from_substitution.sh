#!/bin/bash
#SBATCH --exclusive --ntasks-per-node=2
srun --cpu-bind=mask_cpu:$(genmask a b) ./a
M=mask_cpu:$(genmask a b)
srun --cpu-bind=$M ./a
srun --cpu-bind="mask_cpu:`genmask a b`" ./a
srun --cpu-bind=map_cpu:${CPUS:-1, 2} ./a
#: none
