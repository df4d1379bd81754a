"""What a gradient costs the thread that computes it, before it goes on. A rank of compare.py hooks; rank 0 prints JSON.

    hook.py WAY STEPS

WAY is c (submissions by the C interface, with nothing else), ddl.torch, ddl.torch-views (gradient_as_bucket_view) or
ddl.torch-sharded (ShardedOptimizer). Gradients of ResNet-50 are there already, in their views if there are any, and the
hooks are called one after the other, as a backward pass does: those of the last layers first.
"""
import json
import os
import statistics
import sys
import time

import torch

import ddl
import ddl.torch as hvd
import step as steps
from ddl._library import ffi, lib
from ddl._tensors import Options
from ddl.errors import check

WARM_UP = 5


def submissions(model):
    """What submits each gradient, and what waits for all."""
    handles, optimizer = [], steps.sgd(model)

    def submitting(name, tensor):
        place, options = ffi.cast("void *", tensor.data_ptr()), Options(tensor.shape)
        call = lib.ddl_allreduce_async, name.encode(), place, place, tensor.numel(), lib.DDL_FLOAT32, lib.DDL_AVERAGE
        return lambda: handles.append(options.submit(*call))

    def wait():
        for handle in handles:
            check(lib.ddl_wait(handle))
        handles.clear()
        optimizer.step()

    return [submitting(name, one.grad) for name, one in model.named_parameters()][::-1], wait


def hooks(way, model):
    views = {"gradient_as_bucket_view": True} if way == "ddl.torch-views" else {}
    make = hvd.ShardedOptimizer if way == "ddl.torch-sharded" else hvd.DistributedOptimizer
    optimizer = make(steps.sgd(model), model.named_parameters(), **views)

    def wait():
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()

    return [optimizer._ddl._hook_of(one) for one in model.parameters()][::-1], wait


def main():
    way, count = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    hvd.init()
    model, _ = steps.training("resnet50", int(os.environ["RANK"]))
    for one in model.parameters():
        one.grad = torch.ones_like(one)
    calls, wait = submissions(model) if way == "c" else hooks(way, model)
    taken = {"us": [], "cpu_us": []}
    for _ in range(WARM_UP + count):
        ddl.barrier()
        begin, cpu = time.perf_counter(), time.thread_time()
        for call in calls:
            call()
        taken["us"].append((time.perf_counter() - begin) / len(calls) * 1e6)
        taken["cpu_us"].append((time.thread_time() - cpu) / len(calls) * 1e6)
        wait()
    if ddl.rank() == 0:
        medians = {name: statistics.median(each[WARM_UP:]) for name, each in taken.items()}
        print(json.dumps({**medians, "tensors": len(calls), "torch": torch.__version__}), flush=True)
    ddl.shutdown()


if __name__ == "__main__":
    main()
