#!/bin/bash
#SBATCH --output=logs/%x/%j.out
#SBATCH --error=./errors/%j.err
#SBATCH --time=10
mkdir -p logs/$SLURM_JOB_NAME
ERRORS=$SLURM_SUBMIT_DIR/errors
mkdir -p "$ERRORS"
srun ./a
#: 2 output-folder; 3 output-folder
