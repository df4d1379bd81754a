#!/bin/bash
# Written by ddlrun VERSION for LUMI-G at CSC, HPE Cray EX235A.

#SBATCH --job-name=train
#SBATCH --account=project_465
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --time=30:00
#SBATCH --output=%x-%j.out

set -o errexit

export MPICH_GPU_SUPPORT_ENABLED=1
export MPICH_OFI_NIC_POLICY=GPU
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
export NCCL_NET_GDR_LEVEL=3
export OMP_NUM_THREADS=7
export MIOPEN_USER_DB_PATH="/tmp/$USER-miopen-cache-$SLURM_JOB_ID"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/$USER-miopen-cache-$SLURM_JOB_ID"

# Each rank runs in this container.
container=(singularity exec --bind /pfs --bind /scratch --bind /projappl --bind /project --bind /flash --bind /appl --bind /var/spool/slurmd --bind /opt/cray --bind /usr/lib64/libcxi.so.1 --bind /usr/lib64/libjansson.so.4 /appl/pytorch.sif)

# Where local rank 0, 1, ... of each node run:
#   map_cpu:49,57,17,25,1,9,33,41
#   mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000

# Local rank 0, 1, ... sees these GPUs. All of the node stay in its cgroup, so that ranks reach each other's memory.
# shellcheck disable=SC2016 # each rank expands it
choose_gpu='gpus=(0 1 2 3 4 5 6 7); export ROCR_VISIBLE_DEVICES="${gpus[SLURM_LOCALID]}"; exec "$@"'

exec srun \
  --mpi=cray_shasta \
  --cpus-per-task=7 \
  --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000 \
  bash -c "$choose_gpu" bash "${container[@]}" python train.py
