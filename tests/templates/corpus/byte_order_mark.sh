#!/bin/bash
#SBATCH --nodes=1
srun ./a
#: 1 no-interpreter
