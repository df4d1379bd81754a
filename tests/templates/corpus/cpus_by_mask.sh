#!/bin/bash
#SBATCH --exclusive --ntasks-per-node=2 --cpus-per-task=7
srun --cpu-bind=mask_cpu:fe,fe00 ./a
srun --cpu-bind=none ./a
export SLURM_CPU_BIND=none
srun ./a
#: none
