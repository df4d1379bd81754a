#!/bin/bash
#SBATCH --ntasks-per-node=2 --cpus-per-task=7
OPTIONS="--cpus-per-task=$SLURM_CPUS_PER_TASK --cpu-bind=cores"
srun $OPTIONS ./a
WITHOUT="--cpu-bind=cores"
srun $WITHOUT ./a
srun $FROM_SOMEWHERE ./a
#: 6 cpus-per-task-on-srun
