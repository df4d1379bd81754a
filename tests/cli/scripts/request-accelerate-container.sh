#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=finetune
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --output=%x-%j.out

set -o errexit

# Each rank runs in this container.
container=("$(command -v apptainer || command -v singularity)" exec --rocm --bind /scratch --cleanenv --env=HF_HOME=/scratch/hf pytorch.sif)

# What a rank does in its container before the command.
# shellcheck disable=SC2016 # the shell in the container expands it
in_container='eval "$(conda shell.bash hook)"; conda activate /opt/conda/envs/hf; exec "$@"'

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 4 -- "${container[@]}" bash -c "$in_container" bash python finetune.py
