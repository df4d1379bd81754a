"""An allreduce by Adasum beside a sum of the same arrays: microseconds of a call, in rounds that alternate.

    ddlrun -np 2 python3 bench/adasum.py

Prints, for each size, the medians over nine rounds with the least and the most, and the median of the rounds' ratios.
Needs ddl and NumPy.
"""
import statistics
import time

import ddl
import numpy

ROUNDS = 9
SIZES = [1 << 14, 1 << 18, 1 << 22, 1 << 24]  # floats


def main():
    ddl.init()
    for size in SIZES:
        send = numpy.random.default_rng(ddl.rank()).standard_normal(size).astype(numpy.float32)
        recv = numpy.empty_like(send)
        calls = max(1, min(200, SIZES[-1] // size))
        times = {ddl.SUM: [], ddl.ADASUM: []}
        for _ in range(ROUNDS):
            for op, taken in times.items():
                ddl.allreduce(send, op, out=recv)
                ddl.barrier()
                begin = time.perf_counter()
                for _ in range(calls):
                    ddl.allreduce(send, op, out=recv)
                taken.append((time.perf_counter() - begin) / calls * 1e6)
        if ddl.rank() == 0:
            cells = [f"{statistics.median(one):,.0f} ({min(one):,.0f} to {max(one):,.0f})" for one in times.values()]
            ratio = statistics.median(b / a for a, b in zip(*times.values()))
            print(f"| {4 * size // 1024:,} KiB | {cells[0]} | {cells[1]} | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()
