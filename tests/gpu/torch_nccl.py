"""PyTorch's own NCCL on the first GPU, one rank: an allreduce as torch.distributed puts it on a stream.

    torch_nccl.py [--quick]

Prints lines as gpu_bench does (tests/gpu/measurement.h).
"""
import json
import statistics
import sys
import time

import torch
import torch.distributed


def seconds_of_a_call(tensor, calls):
    """Until all of a run of calls have been done, and until they are on the stream; the median of seven runs."""
    runs = []
    for _ in range(8):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            torch.distributed.all_reduce(tensor)
        on_host = time.perf_counter() - begin
        torch.cuda.synchronize()
        runs.append((time.perf_counter() - begin, on_host))
    whole, on_host = (statistics.median(times) / calls for times in zip(*runs[1:]))
    return whole, on_host


def main():
    sizes = [4, 65536] if "--quick" in sys.argv[1:] else [4, 65536, 1 << 20, 1 << 28]
    store = torch.distributed.TCPStore("127.0.0.1", 0, 1, True)
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    version = ".".join(str(number) for number in torch.cuda.nccl.version())
    for size in sizes:
        tensor = torch.zeros(size // 4, device="cuda")
        whole, on_host = seconds_of_a_call(tensor, 20)
        name = f"allreduce of one rank by PyTorch {torch.__version__} and its NCCL {version}, {size} B, in place"
        for what, value in (("a call of many", whole), ("until it is on the stream", on_host)):
            print(json.dumps({"name": f"{name}, {what}", "value": f"{value * 1e6:.4g}", "unit": "us",
                              "compared with": "", "reference": "", "aim": "", "verdict": ""}))
    torch.distributed.destroy_process_group()


main()
