"""Steps of AdamW on two ranks, whose state one of several ways divides among them. A rank of compare.py zero; rank 0
prints JSON.

    zero_step.py WAY MODEL STEPS

WAY is data-parallel (ddl.torch's DistributedOptimizer, gradients as views), ddl (its ShardedOptimizer), pytorch
(ZeroRedundancyOptimizer with DistributedDataParallel over gloo) or deepspeed (ZeRO-1 over gloo).
"""
import json
import os
import re
import statistics
import sys
import time

import torch

import step as steps

WARM_UP = 3


def resident():
    """Bytes of memory of this process. Of a page that several processes use, each has its part."""
    with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
        return 1024 * int(re.search(r"^Pss: +([0-9]+) kB$", file.read(), re.MULTILINE)[1])


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-6)


def prepared(way, model, rank):
    """What makes a step."""
    loss_of = steps.training("resnet50", rank)[1]
    if way == "deepspeed":
        import deepspeed

        deepspeed.init_distributed("gloo")
        config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}, "gradient_clipping": 0.0,
                  "zero_allow_untested_optimizer": True}
        engine, _, _, _ = deepspeed.initialize(model=model, optimizer=adamw(model), config=config)

        def step():
            engine.backward(loss_of(engine))
            engine.step()

        return step
    forward = model
    if way == "pytorch":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        torch.distributed.init_process_group("gloo")
        forward = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        how = dict(lr=1e-6, parameters_as_bucket_view=True)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **how)
    else:
        import ddl.torch as hvd

        hvd.init()
        if way == "ddl":
            optimizer = hvd.ShardedOptimizer(adamw(model), model.named_parameters())
        else:
            optimizer = hvd.DistributedOptimizer(adamw(model), model.named_parameters(), gradient_as_bucket_view=True)

    def step():
        optimizer.zero_grad()
        loss_of(forward).backward()
        optimizer.step()

    return step


def main():
    way, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    if way == "deepspeed":
        import deepspeed  # noqa: F401 - what it needs of memory by itself does not count
    before = resident()
    model, _ = steps.training(name, rank)
    step = prepared(way, model, rank)
    times = []
    for _ in range(WARM_UP + count):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        sizes = [one.numel() for one in model.parameters()]
        print(json.dumps({"ms": 1000 * statistics.median(times[WARM_UP:]), "tensors": len(sizes),
                          "parameters": sum(sizes), "bytes": resident() - before,
                          "torch": torch.__version__}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # threads of gloo may abort a process that ends


if __name__ == "__main__":
    main()
