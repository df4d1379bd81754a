#!/bin/bash
#SBATCH --nodes=4
deepspeed --hostfile hosts.txt train.py
deepspeed --num_gpus 8 train.py
#: 4 launcher-on-one-node
