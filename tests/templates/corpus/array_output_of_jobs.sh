#!/bin/bash
#SBATCH --array=0-9%2 --output=train-%j.out --error=/dev/null
srun ./a
#: none
