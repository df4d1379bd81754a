#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=fit
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=0:45:00
#SBATCH --array=0-99%8
#SBATCH --output=%x-%A_%a.out

set -o errexit

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 4 \
  --output-filename "logs/$SLURM_ARRAY_TASK_ID" \
  -- python fit.py --seed "$SLURM_ARRAY_TASK_ID" --cost "5\$" "$@"
