#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=simulate
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=64
#SBATCH --time=6:00:00
#SBATCH --dependency=afterok:4711
#SBATCH --output=%x-%j.out

set -o errexit

cp -r /project/input "$TMPDIR"

# Slurm sends SIGTERM to every process of a job that is cancelled. This shell stays until the ranks have ended.
signals=0 seen=-1
trap 'signals=$((signals + 1))' TERM

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

ddlrun -np 64 -- ./simulate &
launch=$!

# A signal ends wait, too.
while [ "$seen" -ne "$signals" ]; do
  seen=$signals
  status=0
  wait "$launch" || status=$?
done

# These lines run whatever the ranks have ended with, which is $status. If the ranks have succeeded, the job's exit code
# is that of the first of these that fails.
set +o errexit
trap 'status=$((status ? status : $?))' ERR
cp -r "$TMPDIR/output" /project/
[ "$status" -eq 0 ] || cp core.* /project/
trap - ERR

exit "$status"
