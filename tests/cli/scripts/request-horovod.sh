#!/bin/bash -l
# Written by ddlrun VERSION.

#SBATCH --job-name=keras_train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=08:00:00
#SBATCH --constraint=v100
#SBATCH --output=%x-%j.out

set -o errexit

module load Horovod/0.28.1

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 16 \
  --framework horovod \
  -- python keras_train.py
