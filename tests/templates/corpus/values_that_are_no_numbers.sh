#!/bin/bash
#SBATCH --nodes=2;
#SBATCH -n=4
#SBATCH --cpus-per-task=8cores
#SBATCH --gpus-per-node=4gpus
#SBATCH --gres=gpu:4;
#SBATCH --time=10:00;
#SBATCH --mem=64;
srun -c 8cores ./a
#: 2 bad-value; 3 bad-value; 4 bad-value; 5 bad-value; 6 bad-value; 7 bad-time; 8 bad-value; 9 bad-value
