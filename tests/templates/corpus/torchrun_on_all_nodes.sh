#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=4
export LAUNCH="torchrun --nnodes=2 --nproc-per-node=4 train.py"
srun bash -c "$LAUNCH"
for node in $(scontrol show hostnames); do ssh $node torchrun --nnodes=2 train.py & done
wait
#: none
