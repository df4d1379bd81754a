#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4
horovodrun -np 8 -H a:4,b:4 python train.py
horovodrun -np 8 python train.py
#: 4 launcher-on-one-node
