#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export MKL_NUM_THREADS=${SLURM_CPUS_PER_GPU:-4}
srun -n $((SLURM_NTASKS_PER_NODE * 1)) -c $SLURM_CPUS_PER_TASK ./a --gpus $SLURM_GPUS
#: 3 variable-without-option; 5 variable-without-option
