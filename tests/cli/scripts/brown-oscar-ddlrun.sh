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

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 8 -- python train.py --epochs 3
