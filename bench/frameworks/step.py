"""Steps of a training, whose gradients one of several ways averages. A rank of compare.py steps; rank 0 prints JSON.

    step.py WAY MODEL STEPS

WAY is none (one process, no averaging), ddl.torch, ddl.torch-views (gradient_as_bucket_view), c (named tensors of the
C interface, submitted after the backward pass), horovod, or ddp- or fsdp2- and a backend, ddl or gloo. The model
resnet50 has the parameters of ResNet-50 and no computation but the gradients themselves; conv is a small convolutional
network that computes.
"""
import json
import math
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples/python"))
import gradient_models

WARM_UP = 5  # DistributedDataParallel chooses its buckets in the first steps


class Parameters(torch.nn.Module):
    """The parameters of a model; their gradients are the input, so the backward pass only writes them."""

    def __init__(self, shapes):
        super().__init__()
        self.all = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(shape)) for shape in shapes)

    def forward(self, x):
        return sum((parameter.sum() * x for parameter in self.all), torch.zeros(()))


def conv():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(32 * 7 * 7, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10),
    )


def training(name, rank):
    """The model, and a function that gives the loss of a step. The gradients of each rank are different."""
    torch.manual_seed(1)
    if name == "resnet50":
        model = Parameters([shape for layer in gradient_models.MODELS[name] for shape in layer.shapes])
        return model, lambda forward: forward(torch.tensor(rank + 1.0))
    model = conv()
    torch.manual_seed(2 + rank)
    images, labels = torch.rand(16, 1, 28, 28), torch.randint(10, (16,))
    return model, lambda forward: torch.nn.functional.cross_entropy(forward(images), labels)


def averaged(way, model):
    """The model and the optimizer to train with, and what ends the communication."""
    if way in ("none", "c", "ddl.torch", "ddl.torch-views", "horovod"):
        optimizer = sgd(model)
        if way == "none":
            return model, optimizer, lambda: None
        if way == "horovod":
            import horovod.torch as hvd
        else:
            import ddl.torch as hvd
        hvd.init()
        if way == "c":
            return model, ByC(optimizer, model), hvd.shutdown
        if way == "ddl.torch-views":
            views = {"gradient_as_bucket_view": True}
            return model, hvd.DistributedOptimizer(optimizer, model.named_parameters(), **views), hvd.shutdown
        return model, hvd.DistributedOptimizer(optimizer, model.named_parameters()), hvd.shutdown
    parallel, backend = way.split("-")
    if backend == "ddl":
        import ddl.torch.process_group  # noqa: F401 - it registers the backend
    torch.distributed.init_process_group(backend)
    if parallel == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        model = fully_shard(model)
    else:  # in its fastest form: gradients are not copied out of the buckets
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model, sgd(model), torch.distributed.destroy_process_group


class ByC:
    """An optimizer whose gradients are averaged by nothing but calls of libddl."""

    def __init__(self, optimizer, model):
        from ddl._library import lib
        from ddl._tensors import Options

        self.lib, self.zero_grad, self.step_alone = lib, optimizer.zero_grad, optimizer.step
        # The last gradients are there first.
        self.tensors = [(name.encode(), one, Options(one.shape)) for name, one in model.named_parameters()][::-1]

    def step(self):
        from ddl._library import ffi
        from ddl.errors import check

        handles = []
        for name, one, options in self.tensors:
            place = ffi.cast("void *", one.grad.data_ptr())
            call = self.lib.ddl_allreduce_async, name, place, place, one.numel()
            handles.append(options.submit(*call, self.lib.DDL_FLOAT32, self.lib.DDL_AVERAGE))
        for handle in handles:
            check(self.lib.ddl_wait(handle))
        self.step_alone()


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=1e-6)


def main():
    way, name, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rank, size = (0, 1) if way == "none" else (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    torch.set_num_threads(1)
    model, loss_of = training(name, rank)
    forward, optimizer, end = averaged(way, model)
    times = []
    for _ in range(WARM_UP + steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss_of(forward).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    if name == "resnet50":
        mean = (size + 1) / 2
        gradients = [getattr(one.grad, "to_local", lambda: one.grad)() for one in model.parameters()]  # FSDP2's are DTensors
        wrong = sum(not torch.allclose(one, torch.tensor(mean)) for one in gradients)
        if wrong:
            raise SystemExit(f"rank {rank}: {wrong} gradients of {way} are not the ranks' mean")
    if rank == 0:
        sizes = [math.prod(one.shape) for one in model.parameters()]
        print(json.dumps({"ms": 1000 * statistics.median(times[WARM_UP:]), "tensors": len(sizes),
                          "parameters": sum(sizes), "torch": torch.__version__}), flush=True)
    end()


if __name__ == "__main__":
    main()
