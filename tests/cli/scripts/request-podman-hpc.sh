#!/bin/bash
# Written by ddlrun VERSION for Perlmutter at NERSC, nodes with four A100.

#SBATCH --job-name=train
#SBATCH --account=m1234_g
#SBATCH --qos=regular
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=1:00:00
#SBATCH --constraint=gpu
#SBATCH --output=%x-%j.out
#SBATCH --gpu-bind=none

set -o errexit

export MPICH_OFI_NIC_POLICY=GPU

# Each rank runs in this container.
container=(podman-hpc run --rm --env-host --network=host --ipc=host --pid=host --volume "$PWD:$PWD" --workdir "$PWD" --gpu --volume /pscratch/me:/data me/train:1)

# Where local rank 0, 1, ... of each node run (ddlrun plans it on the node):
#   map_cpu:48,32,16,0
#   mask_cpu:0xffff000000000000,0xffff00000000,0xffff0000,0xffff

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 8 -- "${container[@]}" python train.py
