#!/bin/bash
#SBATCH --account=project_465000001 --partition=standard-g --nodes=2
#SBATCH --ntasks-per-node=128
srun ./a
#: site lumi-g
#: 3 too-many-cpus
