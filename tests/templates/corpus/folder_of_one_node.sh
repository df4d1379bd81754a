#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4
export CACHE=$(mktemp -d)
WORK=$(mktemp -d -p /tmp job.XXXXXX)
SHARED=$(mktemp -d -p $SCRATCH)
UNUSED=$(mktemp)
srun ./a --folder $WORK --shared $SHARED
#: 3 folder-of-one-node; 4 folder-of-one-node
