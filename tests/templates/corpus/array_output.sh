#!/bin/bash
#SBATCH --array=0-9
#SBATCH --output=train-%A.out
#SBATCH --error=train-%A_%4a.err
srun ./a
#: 3 array-output
