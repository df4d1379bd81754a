#!/bin/bash -l
# Written by ddlrun VERSION.

#SBATCH --job-name="a long name"
#SBATCH --account=p
#SBATCH --partition=q
#SBATCH --qos=high
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-gpu=32G
#SBATCH --time=1-12:00:00
#SBATCH --exclusive
#SBATCH --constraint=a100&nvlink
#SBATCH --dependency=afterok:4711
#SBATCH --array=0-9%4
#SBATCH --output=%x-%A_%a.out
#SBATCH --error=%x-%j.err
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR2@120
#SBATCH --mail-user=me@example.org
#SBATCH --mail-type=END,FAIL
#SBATCH --licenses=matlab:1

set -o errexit

source /cvmfs/software.eessi.io/versions/2023.06/init/bash

# Modules that EasyBuild made.
export EBU_USER_PREFIX='/projects/my modules'

module load GCC/12.3.0

ulimit -c 0

# Each rank runs in this container.
container=("$(command -v apptainer || command -v singularity)" exec --nv --bind /scratch --bind '/my data:/data' image.sif)

# What a rank does in its container before the command.
# shellcheck disable=SC2016 # the shell in the container expands it
in_container='eval "$(conda shell.bash hook)"; conda activate torch; exec "$@"'

# Slurm sends SIGTERM to every process of a job that is cancelled. This shell stays until the ranks have ended.
signals=0 seen=-1
trap 'signals=$((signals + 1))' TERM

/opt/ddl/bin/ddlrun -np 4 \
  -x LR=0.1 \
  -x TOKEN \
  --timeout 3600 \
  --job-name 'a long name' \
  --bind-to numa \
  --cores-per-rank 4 \
  --output-filename logs \
  --tag-output \
  -- "${container[@]}" bash -c "$in_container" bash python train.py --name 'it'\''s "me" & more' 'two'$'\n''lines' &
launch=$!

# A signal ends wait, too.
while [ "$seen" -ne "$signals" ]; do
  seen=$signals
  status=0
  wait "$launch" || status=$?
done

exit "$status"
