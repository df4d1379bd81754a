#!/bin/bash
#SBATCH --nodes=4
python train.py
#: 3 nodes-without-launcher
