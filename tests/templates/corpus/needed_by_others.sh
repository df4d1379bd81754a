#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4
srun ./simulate input.nml
#: site alps-gh200
#: none
