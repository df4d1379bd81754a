"""Every public name of Horovod is in the package horovod of ddlrun, but those that are listed here with a reason.

    horovod_names.py     started by ddlrun --as-horovod, with a Python that has Horovod
"""
import importlib
import json
import os
import subprocess
import sys
import types

MODULES = (
    "horovod horovod.runner horovod.common.exceptions horovod.common.process_sets horovod.common.util"
    " horovod.torch horovod.torch.compression horovod.torch.functions horovod.torch.mpi_ops horovod.torch.optimizer"
    " horovod.torch.sync_batch_norm horovod.torch.elastic horovod.torch.elastic.sampler horovod.torch.elastic.state"
    " horovod.common.elastic"
    " horovod.tensorflow horovod.tensorflow.compression horovod.tensorflow.elastic horovod.tensorflow.functions"
    " horovod.tensorflow.mpi_ops horovod.tensorflow.sync_batch_norm horovod.tensorflow.util"
    " horovod.tensorflow.keras horovod.tensorflow.keras.callbacks horovod.tensorflow.keras.elastic"
    " horovod.keras horovod.keras.callbacks horovod.keras.elastic"
).split()
# By module: why, and names.
ABSENT = {
    "horovod.torch.mpi_ops": "Horovod's classes of autograd, which its functions use: HorovodAllgather"
    " HorovodAllreduce HorovodAlltoall HorovodBroadcast HorovodGroupedAllgather HorovodGroupedAllreduce"
    " HorovodGroupedReducescatter HorovodReducescatter",
    "horovod.common.process_sets": "what that module imports, and how it loads Horovod's library: HorovodBasics MPI"
    " TYPE_CHECKING is_iterable",
    "horovod.common.elastic": "how Horovod's driver tells ranks of hosts: HostUpdateResult WorkerNotificationManager"
    " notification_manager",
    "horovod.tensorflow": "how Horovod's optimizers add up gradients: LocalGradientAggregationHelper",
}


def names_of(module):
    """Those that are Horovod's own, not of what it imports."""
    found = vars(importlib.import_module(module)).items()
    is_own = lambda one: (getattr(one, "__module__", None) or "horovod").startswith(("horovod", "ddl"))
    return sorted(name for name, one in found
                  if name[0] != "_" and not isinstance(one, types.ModuleType) and is_own(one)
                  and type(one).__name__ != "_Feature")


def horovods_own():
    """In another process, without the folder of --as-horovod."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    out = subprocess.run([sys.executable, __file__, "--list"], env=environment, stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    return json.loads(out.splitlines()[-1])


def main():
    if sys.argv[1:] == ["--list"]:
        print(json.dumps({module: names_of(module) for module in MODULES}))
        return
    import horovod

    assert "+ddl." in horovod.__version__, horovod.__file__
    wrong, number = [], 0
    for module, names in horovods_own().items():
        ours = set(dir(importlib.import_module(module)))
        absent = ABSENT.get(module, "").rpartition(": ")[2].split()
        wrong += [f"{module}.{name} is missing" for name in names if name not in ours and name not in absent]
        wrong += [f"{module}.{name} is there" for name in names if name in ours and name in absent]
        number += len(names)
    assert number > 400, number
    print(f"rank {os.environ['RANK']}: {'; '.join(wrong) or 'right'}", flush=True)
    sys.exit(1 if wrong else 0)


main()
