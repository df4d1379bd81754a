#!/bin/bash
#SBATCH --account=project_465000001 --partition=standard --nodes=2
#SBATCH --ntasks-per-node=128 --exclusive
srun --cpu-bind=map_cpu:0,127 ./a
#: site lumi-g
#: none
