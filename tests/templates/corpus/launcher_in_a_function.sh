#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4
run() {
  torchrun --nproc-per-node=4 train.py
}
export -f run
srun bash -c run
#: 7 launcher-per-task missed
