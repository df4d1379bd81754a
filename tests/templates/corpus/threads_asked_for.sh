#!/bin/bash
#SBATCH --nodes=1
if [ -n "$SLURM_CPUS_PER_TASK" ]; then
  export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
fi
srun ./a
srun -n 4 bash -c 'OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK ./a'
#: none
