#!/bin/bash
#SBATCH --account=m1234 -C cpu --qos=regular --nodes=4
#SBATCH --ntasks-per-node=128 --cpus-per-task=2
srun -c 2 --cpu-bind=cores ./a
#: site perlmutter-gpu
#: none
