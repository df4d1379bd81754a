#!/bin/bash
# Submit it with
#   sbatch -N 2 job.sh
# or, for a longer one,
#   sbatch --time=10:00:00 \
#     job.sh
#sbatch --dependency=afterok:17 next.sh
#SBATCH --nodes=1 --time=10
# SBATCH --time=20
# sbatch --wrap=hostname
srun ./a
#: none
