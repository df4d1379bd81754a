#!/bin/bash
#SBATCH --account=project --partition=thea --qos=user --nodelist=n[1-4]
#SBATCH --array=[1-4] --mail-user=me@example.org --constraint=[rack1|rack2]
#SBATCH --output=%x-%a.out
srun ./a
#: none
