#!/bin/bash -l
# Written by ddlrun VERSION for Olivia at NRIS, nodes with four Grace-Hopper.

#SBATCH --job-name=train
#SBATCH --account=NN1234K
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --mem-per-gpu=100G
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

module load NCCL/2.26.6-GCCcore-14.2.0-CUDA-12.8.0

export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
export OMP_NUM_THREADS=72
if [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then export OMPI_MCA_pml=cm; export OMPI_MCA_mtl=ofi; export OMPI_MCA_mtl_ofi_av=table; export PRTE_MCA_ras_base_launch_orted_on_hn=1; export FI_PROVIDER=cxi; export FI_CXI_RX_MATCH_MODE=hybrid; else export OMPI_MCA_pml=ob1; export OMPI_MCA_btl=sm,smcuda,self; fi

# Local rank 0, 1, ... sees these GPUs of those that Slurm gives the job. All of them stay in its cgroup, so that ranks reach each other's memory.
# shellcheck disable=SC2016 # each rank expands it
choose_gpu='IFS=, read -ra given <<< "$(printenv CUDA_VISIBLE_DEVICES || echo 0,1,2,3)"; own=(0 1 2 3); list=
for gpu in ${own[SLURM_LOCALID]//,/ }; do list+=",${given[gpu]}"; done; export CUDA_VISIBLE_DEVICES="${list#,}"; exec "$@"'

exec srun \
  --cpus-per-task=72 \
  --cpu-bind=cores \
  bash -c "$choose_gpu" bash python train.py --epochs 3
