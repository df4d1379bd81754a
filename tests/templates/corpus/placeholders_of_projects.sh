#!/bin/bash
#SBATCH --account=project_465xxxxxx --partition=CHANGEME
#SBATCH --mem=<memory in GB>
srun ./a
#: 2 placeholder; 2 placeholder; 3 placeholder
