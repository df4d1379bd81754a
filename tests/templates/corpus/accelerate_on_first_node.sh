#!/bin/bash
#SBATCH --nodes=4
accelerate launch --num_machines 4 --num_processes 16 train.py
#: 3 launcher-on-one-node
