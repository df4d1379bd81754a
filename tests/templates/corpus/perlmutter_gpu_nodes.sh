#!/bin/bash
#SBATCH --account=m1234 -C gpu&hbm80g --qos=regular --nodes=4
#SBATCH --ntasks-per-node=4 --cpus-per-task=64 --gpus-per-node=4
srun -c 64 --cpu-bind=cores ./a
#: site perlmutter-gpu
#: 2 account-suffix; 3 too-many-cpus
