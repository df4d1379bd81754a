"""libddl's sums over the MPI of this Python's environment, under ddlrun --cpu-operations mpi.

  ddl_over_mpi.py libddl   libddl loads MPI and initialises it
  ddl_over_mpi.py abi      this program does, by the standard ABI of MPI 5, and uses MPI between libddl's calls
  ddl_over_mpi.py mpi4py   mpi4py does, by the MPI's own ABI
  ddl_over_mpi.py two      this program loads both libraries of the environment's MPI, and ddl_init refuses that

Each rank prints one line, with the MPIs that it has loaded at the end. It ends with ": right" if all is as it should be.
"""
import ctypes
import os
import sys

FOLDER = os.path.join(sys.prefix, "lib")
ABI, OWN = "libmpi_abi.so.1", "libmpi.so.12"
# MPI 5.0, 20.5: handles are pointers, and these have fixed values.
COMM_WORLD, INT, SUM = (ctypes.c_void_p(value) for value in (0x101, 0x209, 0x21))
THREAD_MULTIPLE = 4096
DDL_INT32, DDL_SUM, COUNT = 0x120, 0, 1000


def loaded_mpis():
    """The names of the files, if they all lie in this environment."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split()[-1] for line in maps if "/libmpi" in line}
    elsewhere = [file for file in files if os.path.dirname(os.path.realpath(file)) != os.path.realpath(FOLDER)]
    return elsewhere or sorted({os.path.basename(file).split(".so")[0] for file in files})


def load(name):
    return ctypes.CDLL(os.path.join(FOLDER, name), ctypes.RTLD_LOCAL)


class OwnMpi:
    """MPI, called by this program."""

    def __init__(self):
        self.library = load(ABI)
        level = ctypes.c_int()
        assert self.library.MPI_Init_thread(None, None, THREAD_MULTIPLE, ctypes.byref(level)) == 0
        assert level.value == THREAD_MULTIPLE

    def sum(self, value):
        own, total = ctypes.c_int(value), ctypes.c_int()
        assert self.library.MPI_Allreduce(ctypes.byref(own), ctypes.byref(total), 1, INT, SUM, COMM_WORLD) == 0
        return total.value

    def finalize(self):
        assert self.library.MPI_Finalize() == 0


class Mpi4py:
    """The same by mpi4py."""

    def __init__(self):
        from mpi4py import MPI

        self.world = MPI.COMM_WORLD

    def sum(self, value):
        return self.world.allreduce(value)

    def finalize(self):
        pass  # mpi4py does, when the process exits


way = sys.argv[1]
mpi = {"abi": OwnMpi, "mpi4py": Mpi4py}.get(way, lambda: None)()
if way == "two":
    libraries = load(ABI), load(OWN)
ddl = ctypes.CDLL(os.environ["DDL_LIBRARY"])
for function in (ddl.ddl_last_error, ddl.ddl_mpi_library):
    function.restype = ctypes.c_char_p
context = ctypes.c_void_p()
status = ddl.ddl_init(None, ctypes.byref(context))
error = ddl.ddl_last_error().decode()
if way == "two":
    is_right = status != 0 and all(os.path.join(FOLDER, name) in error for name in (ABI, OWN))
    print(f"ddl_init: {error}: {'right' if is_right else 'wrong'}", flush=True)
    sys.exit(0 if is_right else 1)
if status != 0:
    sys.exit(f"ddl_init: {error}")
rank, size = ddl.ddl_rank(context), ddl.ddl_size(context)
library = ddl.ddl_mpi_library().decode()
wrong = 0
for repetition in range(3):
    values = (ctypes.c_int32 * COUNT)(*(rank + element for element in range(COUNT)))
    status = ddl.ddl_allreduce(context, values, values, ctypes.c_uint64(COUNT), DDL_INT32, DDL_SUM, None)
    expected = [size * (size - 1) // 2 + size * element for element in range(COUNT)]
    wrong += status != 0 or list(values) != expected
    if mpi is not None:
        wrong += mpi.sum(rank) != size * (size - 1) // 2
if way == "libddl":
    # libddl lets MPI return errors; by default MPI would end the process.
    nobody, tag = size + 100, 0
    wrong += load(ABI).MPI_Send(ctypes.byref(ctypes.c_int()), 1, INT, nobody, tag, COMM_WORLD) == 0
wrong += ddl.ddl_finalize(context) != 0
if mpi is not None:
    wrong += mpi.sum(1) != size
mpis = loaded_mpis()
wrong += mpis != (["libmpi"] if way == "mpi4py" else ["libmpi_abi"])
if mpi is not None:
    mpi.finalize()
print(f"rank {rank} of {size} over {library}, loaded: {', '.join(mpis)}: "
      f"{'right' if wrong == 0 else f'{wrong} wrong, {ddl.ddl_last_error().decode()}'}", flush=True)
sys.exit(1 if wrong else 0)
