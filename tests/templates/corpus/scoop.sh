#!/bin/bash
#SBATCH --nodes=4 --ntasks=64
scontrol show hostnames > hosts.txt
python -m scoop --hostfile hosts.txt search.py
#: none
