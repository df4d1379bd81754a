"""An allreduce by Adasum beside a sum of the same arrays: microseconds of a call, in rounds that alternate.

    ddlrun -np 2 python3 bench/adasum.py

Prints, for each size, the medians over nine rounds with the least and the most, and the median of the rounds' ratios.
Needs ddl and NumPy. If Python has a Horovod that was built with MPI, the Adasum of its PyTorch is there, too: that of
the environment horovod-mpi of scripts/frameworks, with the package ddl in PYTHONPATH.
"""
import statistics
import time

import numpy

import ddl

try:
    import horovod.torch as horovod
    import torch
except ImportError:
    horovod = None

ROUNDS = 9
SIZES = [1 << 14, 1 << 18, 1 << 22, 1 << 24]  # floats


def calls_of(size):
    """By the name of a column, what makes a call."""
    send = numpy.random.default_rng(ddl.rank()).standard_normal(size).astype(numpy.float32)
    recv = numpy.empty_like(send)
    calls = {"sum": lambda: ddl.allreduce(send, ddl.SUM, out=recv),
             "Adasum": lambda: ddl.allreduce(send, ddl.ADASUM, out=recv)}
    if horovod:
        tensor = torch.from_numpy(send.copy())
        calls["Horovod's Adasum"] = lambda: horovod.allreduce_(tensor, op=horovod.Adasum, name=f"of {size}")
    return calls


def main():
    ddl.init()
    if horovod:
        horovod.init()
    for size in SIZES:
        calls = calls_of(size)
        count = max(1, min(200, SIZES[-1] // size))
        times = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                call()
                ddl.barrier()
                begin = time.perf_counter()
                for _ in range(count):
                    call()
                times[name].append((time.perf_counter() - begin) / count * 1e6)
        if ddl.rank() == 0:
            if size == SIZES[0]:
                names = [*times, *[f"Adasum, of {name}" for name in times if name != "Adasum"]]
                print(f"| | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
            cells = [f"{statistics.median(one):,.0f} ({min(one):,.0f} to {max(one):,.0f})" for one in times.values()]
            for name in times:
                if name != "Adasum":
                    cells.append(f"{statistics.median(a / b for a, b in zip(times['Adasum'], times[name])):.2f}")
            print(f"| {4 * size // 1024:,} KiB | {' | '.join(cells)} |", flush=True)
    if horovod:
        horovod.shutdown()


if __name__ == "__main__":
    main()
