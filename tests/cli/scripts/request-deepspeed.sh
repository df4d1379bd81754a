#!/bin/bash -l
# Written by ddlrun VERSION.

#SBATCH --job-name=train
#SBATCH --qos=long
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=1-0:00:00
#SBATCH --output=%x-%j.out

set -o errexit

eval "$(conda shell.bash hook)"
conda activate deepspeed

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 16 \
  --ranks-per-node 8 \
  --framework deepspeed \
  -- python train.py --deepspeed --deepspeed_config zero3.json
