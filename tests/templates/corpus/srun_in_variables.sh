#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=8
RUN="srun --label"
ARGS=(srun --mpi=pmix
  --kill-on-bad-exit=1)
$RUN ./a
"${ARGS[@]}" ./a
COMMAND="$RUN ./a"
eval $COMMAND
run() { srun "$@"; }
run ./a
#: 6 cpus-per-task-on-srun; 7 cpus-per-task-on-srun; 9 cpus-per-task-on-srun; 10 cpus-per-task-on-srun missed
