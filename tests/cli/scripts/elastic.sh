#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=train
#SBATCH --ntasks=10
#SBATCH --output=%x-%j.out
#SBATCH --no-kill
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120

set -o errexit

# Slurm sends SIGTERM to every process of a job that is cancelled. This shell stays until the ranks have ended.
signals=0 seen=-1 cancelled=''
trap 'signals=$((signals + 1)) cancelled=yes' TERM
trap 'signals=$((signals + 1)); kill -s USR1 "$launch" || :' USR1

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

ddlrun -np 8 \
  --elastic continue \
  --max-np 8 \
  --spares 2 \
  --state-dir /scratch/state \
  -- ./train &
launch=$!

# A signal ends wait, too.
while [ "$seen" -ne "$signals" ]; do
  seen=$signals
  status=0
  wait "$launch" || status=$?
done

# The ranks have saved what they need, and ask to be started again.
if [ "$status" -eq 119 ] && [ -z "$cancelled" ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
