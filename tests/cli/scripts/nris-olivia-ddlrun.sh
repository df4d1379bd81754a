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
if [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then export OMPI_MCA_pml=cm; export OMPI_MCA_mtl=ofi; export OMPI_MCA_mtl_ofi_av=table; export PRTE_MCA_ras_base_launch_orted_on_hn=1; export FI_PROVIDER=cxi; export FI_CXI_RX_MATCH_MODE=hybrid; else export OMPI_MCA_pml=ob1; export OMPI_MCA_btl=sm,smcuda,self; fi

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 8 -- python train.py --epochs 3
