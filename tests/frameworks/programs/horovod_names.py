"""Every public name of Horovod is in the package horovod of ddlrun, but those that are listed here with a reason.

    horovod_names.py MODULE...     started by ddlrun --as-horovod, with a Python that has Horovod
"""
import importlib
import json
import os
import subprocess
import sys
import types

# By module: why, and names.
ABSENT = {
    "horovod.torch.mpi_ops": "Horovod's classes of autograd, which its functions use: HorovodAllgather"
    " HorovodAllreduce HorovodAlltoall HorovodBroadcast HorovodGroupedAllgather HorovodGroupedAllreduce"
    " HorovodGroupedReducescatter HorovodReducescatter",
    "horovod.common.process_sets": "what that module imports, and how it loads Horovod's library: HorovodBasics MPI"
    " TYPE_CHECKING is_iterable",
    "horovod.tensorflow": "how Horovod's optimizers add up gradients: LocalGradientAggregationHelper",
    "horovod.tensorflow.keras.elastic": "what Horovod's KerasState is made of: TensorFlowKerasState",
    "horovod.keras.elastic": "the same: TensorFlowKerasState",
}


def names_of(module):
    """Those that are Horovod's own, not of what it imports."""
    found = vars(importlib.import_module(module)).items()
    is_own = lambda one: (getattr(one, "__module__", None) or "horovod").startswith(("horovod", "ddl"))
    return sorted(name for name, one in found
                  if name[0] != "_" and not isinstance(one, types.ModuleType) and is_own(one)
                  and type(one).__name__ != "_Feature")


def horovods_own(modules):
    """In another process, without the folder of --as-horovod."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    out = subprocess.run([sys.executable, __file__, "--list", *modules], env=environment, stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    return json.loads(out.splitlines()[-1])


def main():
    modules = sys.argv[1:]
    if modules[0] == "--list":
        print(json.dumps({module: names_of(module) for module in modules[1:]}))
        return
    import horovod

    assert "+ddl." in horovod.__version__, horovod.__file__
    wrong, number = [], 0
    for module, names in horovods_own(modules).items():
        ours = set(dir(importlib.import_module(module)))
        absent = ABSENT.get(module, "").rpartition(": ")[2].split()
        wrong += [f"{module}.{name} is missing" for name in names if name not in ours and name not in absent]
        wrong += [f"{module}.{name} is there" for name in names if name in ours and name in absent]
        number += len(names)
    assert number > 4 * len(modules), number
    print(f"rank {os.environ['RANK']}: {'; '.join(wrong) or 'right'}", flush=True)
    sys.exit(1 if wrong else 0)


main()
