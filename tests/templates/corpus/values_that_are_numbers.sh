#!/bin/bash
#SBATCH --nodes=2-4 --ntasks-per-node=+4
#SBATCH --gpus-per-node=a100:2,1g.10gb:1 --gres=gpu:a100:4,nvme:1
srun --nodes=2k ./a
srun --gpus=a100 ./a
#: none
