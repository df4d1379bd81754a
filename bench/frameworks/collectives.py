"""Compares how long calls of torch.distributed take over several backends, in one run.

    ddlrun -np 2 python collectives.py [--backends ddl gloo] [--calls CALL...] [--largest BYTES] [--rounds N]
        [--json FILE]

Rank 0 prints a table: microseconds of a call, the median over the rounds, in each of which every backend has its turn.
A size is that of a rank's whole input; messages go around a ring. The column "C" is ddl_allreduce() itself, called
without torch.distributed.
"""
import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist

SIZES = [4, 256, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
CALLS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "messages"]  # messages: around a ring
BUDGET_BYTES, MOST_CALLS = 64 << 20, 200  # of a backend's turn


def calls(group, rank, ranks, size):
    """By its name, each call of a size. Tensors are made once."""
    whole, other = torch.ones(max(size // 4, 1)), torch.empty(max(size // 4, 1))
    some = {
        "all_reduce": lambda: dist.all_reduce(whole, group=group),
        "messages": lambda: [work.wait() for work in (
            dist.isend(whole, (rank + 1) % ranks, group), dist.irecv(other, (rank - 1) % ranks, group))],
    }
    if whole.numel() % ranks == 0:
        part, gathered = torch.empty(whole.numel() // ranks), torch.empty(whole.numel() * ranks)
        some["all_gather"] = lambda: dist.all_gather_into_tensor(gathered, whole, group)
        some["reduce_scatter"] = lambda: dist.reduce_scatter_tensor(part, whole, group=group)
        some["all_to_all"] = lambda: dist.all_to_all_single(other, whole, group=group)
    return some


def plain_call(size):
    """ddl_allreduce() itself."""
    import ddl
    from ddl._context import context
    from ddl._library import NULL, ffi, lib

    ddl.init()
    memory = torch.ones(max(size // 4, 1))
    place = ffi.cast("void *", memory.data_ptr())
    arguments = context(), place, place, memory.numel(), lib.DDL_FLOAT32, lib.DDL_SUM, NULL
    return lambda _=memory: lib.ddl_allreduce(*arguments)


def microseconds(call, times, group):
    call()
    dist.barrier(group)
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return 1e6 * (time.perf_counter() - begin) / times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", nargs="+", default=["ddl", "gloo"])
    parser.add_argument("--calls", nargs="+", default=CALLS, choices=CALLS)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(options.backends[0])
    rank, ranks = dist.get_rank(), dist.get_world_size()
    groups = {name: dist.new_group(backend=name) for name in options.backends}
    results = {}
    for size in (one for one in SIZES if one <= options.largest):
        times = max(min(BUDGET_BYTES // size, MOST_CALLS), 1)
        ways = {name: calls(group, rank, ranks, size) for name, group in groups.items()}
        ways = {name: {call: some[call] for call in options.calls if call in some} for name, some in ways.items()}
        if "ddl" in groups and "all_reduce" in options.calls:
            ways["C"] = {"all_reduce": plain_call(size)}
        for _ in range(options.rounds):
            for name, some in ways.items():
                for call, function in some.items():
                    took = microseconds(function, times, groups.get(name) or groups["ddl"])
                    results.setdefault(call, {}).setdefault(size, {}).setdefault(name, []).append(took)
    if rank == 0:
        names = [*options.backends, *(["C"] if "ddl" in groups else [])]
        print("| call | bytes | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 2) + "|")
        for call, sizes in results.items():
            for size, figures in sizes.items():
                cells = [f"{statistics.median(figures[name]):.1f}" if name in figures else "" for name in names]
                print(f"| {call} | {size} | " + " | ".join(cells) + " |", flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"torch": torch.__version__, "ranks": ranks, "microseconds": results}, file)
    dist.destroy_process_group()


main()
