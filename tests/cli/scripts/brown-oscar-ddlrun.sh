#!/bin/bash
# Written by ddlrun VERSION for Oscar at CCV, Brown University.

#SBATCH --job-name=train
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

exec ddlrun -np 8 -- python train.py --epochs 3
