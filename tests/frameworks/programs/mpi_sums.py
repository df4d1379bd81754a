"""MPI by mpi4py: sums, the names of the hosts, and a message of four megabytes to the next rank. The argument is how
many hosts there must be."""
import array
import platform
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
is_right = size == 2 and world.allreduce(rank + 1) == size * (size + 1) // 2
hosts = world.allgather(platform.node())
is_right = is_right and len(set(hosts)) == int(sys.argv[1])
sent = array.array("d", [rank + 0.5]) * 500_000
got = array.array("d", [0.0]) * len(sent)
world.Sendrecv(sent, (rank + 1) % size, 7, got, (rank - 1) % size, 7)
is_right = is_right and got == array.array("d", [(rank - 1) % size + 0.5]) * len(sent)
name = MPI.Get_library_version().splitlines()[0].split(",")[0]
# In one piece, so that mpirun's tag is before the line alone.
sys.stdout.write(f"{name}: rank {rank} of {size} on {hosts[rank]}: {'right' if is_right else 'wrong'}\n")
sys.stdout.flush()
sys.exit(0 if is_right else 1)
