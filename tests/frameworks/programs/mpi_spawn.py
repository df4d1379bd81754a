"""MPI_Comm_spawn by mpi4py, by all ranks together if there is an argument, else by each rank for itself. A launcher may
refuse it: then the error is printed, and the ranks go on."""
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
try:
    (world if len(sys.argv) > 1 else MPI.COMM_SELF).Spawn(sys.executable, ["-c", "pass"], maxprocs=2)
    outcome = "has spawned"
except MPI.Exception as error:
    outcome = f"was refused by error class {error.Get_error_class()}"
total = world.allreduce(1)
sys.stdout.write(f"rank {world.Get_rank()} {outcome}, and sums {total}: right\n")
