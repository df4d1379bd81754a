"""A program of mpi4py: the ranks' numbers added, and the hosts gathered."""
from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank)
hosts = world.allgather(MPI.Get_processor_name())
print(f"mpi4py: rank {world.rank} of {world.size}: sum {total}, {len(set(hosts))} hosts", flush=True)
