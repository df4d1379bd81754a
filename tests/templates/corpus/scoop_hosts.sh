#!/bin/bash
#SBATCH --nodes=4 --ntasks=64
python -m scoop --hosts $NODES -n 64 search.py
#: none
