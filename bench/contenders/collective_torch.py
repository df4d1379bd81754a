#!/usr/bin/python3
"""torch.distributed's allreduce over its backend gloo, measured by the loop of all contenders."""
import ctypes
import os
import sys


def join(module):
    """Returns the rank, the number of ranks and the job's folder. This process is pinned then."""
    words = [word.encode() for word in sys.argv]
    rank, ranks, folder = ctypes.c_int(), ctypes.c_int(), ctypes.c_char_p()
    failed = module.ddl_bench_join(
        len(words),
        (ctypes.c_char_p * len(words))(*words),
        ctypes.byref(rank),
        ctypes.byref(ranks),
        ctypes.byref(folder),
    )
    if failed:
        sys.exit(failed)
    return rank.value, ranks.value, folder.value.decode()


def main():
    module = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libcollective_torch.so"))
    rank, ranks, folder = join(module)

    # ddlrun places OpenMP's threads, but this process is pinned by the harness.
    for name in ("OMP_PLACES", "OMP_PROC_BIND", "OMP_NUM_THREADS"):
        os.environ.pop(name, None)

    # Now, so that torch's threads are pinned, too.
    import torch
    import torch.distributed

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/torch", rank=rank, world_size=ranks
    )
    tensors = {}  # by address and length; made once, as a program's are
    open_calls = []

    def submit(data, count):
        tensor = tensors.get((data, count))
        if tensor is None:
            memory = (ctypes.c_float * count).from_address(data)
            tensor = tensors[data, count] = torch.frombuffer(memory, dtype=torch.float32)
        open_calls.append(torch.distributed.all_reduce(tensor, async_op=True))
        return True

    def complete():
        for call in open_calls:
            call.wait()
        open_calls.clear()
        return True

    # An exception in one of them is printed, and returns false.
    submit_type = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64)
    complete_type = ctypes.CFUNCTYPE(ctypes.c_bool)
    failed = module.ddl_bench_measure(
        torch.distributed.get_rank(),
        torch.distributed.get_world_size(),
        submit_type(submit),
        complete_type(complete),
    )
    # A failed rank does not wait for the others.
    if failed:
        os._exit(failed)
    torch.distributed.destroy_process_group()


main()
