#!/bin/bash
#SBATCH --account=project_465xxxxxx --partition=CHANGEME
#SBATCH --mem=<memory in GB>
#SBATCH --ntasks=*FIXME* --cpus-per-task=X --time=UNLIMITED
srun ./a
#: 2 placeholder; 2 placeholder; 3 placeholder; 4 placeholder; 4 placeholder; 5 cpus-per-task-on-srun
