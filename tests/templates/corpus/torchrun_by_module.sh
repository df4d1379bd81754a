#!/bin/bash
#SBATCH --nodes=2-4
conda run -n train python -m torch.distributed.run --nproc-per-node=4 train.py
#: 3 launcher-on-one-node
