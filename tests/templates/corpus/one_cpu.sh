#!/bin/bash
#SBATCH --partition=standard-g --ntasks-per-node=57
srun ./a
#: site lumi-g
#: 2 too-many-cpus
