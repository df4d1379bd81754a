#!/bin/bash
#SBATCH --account=mygroup42 --partition=thea --qos=user --nodelist=n[1-4]
#SBATCH --array=[1-4] --mail-user=ada@uni.edu --constraint=[rack1|rack2]
#SBATCH --output=%x-%a.out
srun ./a
#: none
