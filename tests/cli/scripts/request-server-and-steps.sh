#!/bin/bash
# Written by ddlrun VERSION.

#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --output=%x-%j.out
#SBATCH --gpus=8
#SBATCH --nodelist=node[01-02]

set -o errexit

./prepare --out input
redis-server --port 6380 &
export REDIS_URL="$HOSTNAME:6380"

# Slurm sends SIGTERM to every process of a job that is cancelled. This shell stays until the ranks have ended.
signals=0 seen=-1
trap 'signals=$((signals + 1))' TERM

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

ddlrun -np 8 -- ./train &
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
[ "$status" -ne 0 ] || ddlrun -np 8 -- ./evaluate
trap - ERR

exit "$status"
