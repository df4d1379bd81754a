#!/bin/bash
#SBATCH --output=logs/%j.out
if [ -z "$SLURM_JOB_ID" ]; then
  mkdir -p logs
  sbatch "$0"
  exit
fi
srun ./a
#: none
