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

# Local rank 0, 1, ... sees these GPUs of those that Slurm gives the job. All of them stay in its cgroup, so that ranks reach each other's memory.
# shellcheck disable=SC2016 # each rank expands it
choose_gpu='IFS=, read -ra given <<< "$(printenv CUDA_VISIBLE_DEVICES || echo 0,1,2,3)"; own=(0 1 2 3); list=
for gpu in ${own[SLURM_LOCALID]//,/ }; do list+=",${given[gpu]}"; done; export CUDA_VISIBLE_DEVICES="${list#,}"; exec "$@"'

exec srun \
  --mpi=pmix \
  --cpu-bind=cores \
  bash -c "$choose_gpu" bash python train.py --epochs 3
