#!/bin/bash -l
# Written by ddlrun VERSION for Saga at NRIS, nodes with four P100.

#SBATCH --job-name=train
#SBATCH --account=NN1234K
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=6
#SBATCH --mem-per-cpu=8G
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

# Modules that EasyBuild made.
export EBU_USER_PREFIX=/cluster/projects/NN1234K/EasyBuild

module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0

export OMP_NUM_THREADS=6

# Local rank 0, 1, ... sees these GPUs of those that Slurm gives the job. All of them stay in its cgroup, so that ranks reach each other's memory.
# shellcheck disable=SC2016 # each rank expands it
choose_gpu='IFS=, read -ra given <<< "$(printenv CUDA_VISIBLE_DEVICES || echo 0,1,2,3)"; own=(0 1 2 3); list=
for gpu in ${own[SLURM_LOCALID]//,/ }; do list+=",${given[gpu]}"; done; export CUDA_VISIBLE_DEVICES="${list#,}"; exec "$@"'

exec srun \
  --mpi=pmix \
  --cpus-per-task=6 \
  --cpu-bind=cores \
  bash -c "$choose_gpu" bash python train.py --epochs 3
