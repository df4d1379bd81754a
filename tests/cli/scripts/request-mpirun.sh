#!/bin/bash -l
# Written by ddlrun VERSION.

#SBATCH --job-name=solver
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=16
#SBATCH --time=1:30:00
#SBATCH --output=%x-%j.out

set -o errexit

module load OpenMPI/5.0.3

if ! command -v ddlrun >/dev/null; then
  echo "ddlrun is not in PATH on $HOSTNAME: load its module, or write this script with --remote-path" >&2
  exit 127
fi

exec ddlrun -np 32 \
  --launcher mpirun \
  --mpi-args '--mca btl_tcp_if_include ib0' \
  -- ./solver input.nml
