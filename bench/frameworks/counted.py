"""A rank of elastic.py: counted.py ddl|horovod|ddp FOLDER. Trains two epochs. In the first one, the last of four ranks
kills itself between two commits. Each process appends the samples that it has trained to a file of its own when they
are committed; those that a failure undoes are not written. The file "ended" has the time of the kill; each rank that
makes a step after it prints when.
"""
import os
import signal
import sys
import time

import torch

way, folder = sys.argv[1:3]
SAMPLES, BATCH, EPOCHS, COMMIT, DIES_AT, SIZE = 1000, 8, 2, 4, 13, 4
INPUTS = torch.randn(SAMPLES, 16, generator=torch.Generator().manual_seed(1))
TARGETS = INPUTS.sum(dim=1, keepdim=True)
ENDED = os.path.join(folder, "ended")
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


class Count:
    """Of one call of the training function, or of one start."""

    def __init__(self):
        self.goes_on = self.has_begun_again = os.path.exists(ENDED)
        self.pending = []

    def step(self, net, stepping, epoch, batch, ids, rank, size):
        if not self.has_begun_again and (rank, size, epoch, batch) == (SIZE - 1, SIZE, 0, DIES_AT):
            with open(ENDED, "w", encoding="utf-8") as file:
                file.write(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        stepping.zero_grad()
        torch.nn.functional.mse_loss(net(INPUTS[ids]), TARGETS[ids]).backward()
        stepping.step()
        self.pending += [f"{epoch} {one}\n" for one in ids.tolist()]
        if self.goes_on:
            print(f"again {time.time()}\n", end="", flush=True)
            self.goes_on = False

    def commit(self):
        with open(os.path.join(folder, f"trained.{os.getpid()}"), "a", encoding="utf-8") as file:
            file.write("".join(self.pending))
        self.pending = []


def train_elastic(hvd):
    """As the documentation of ddl and that of Horovod have it."""
    is_ddl = way == "ddl"

    @hvd.elastic.run
    def train(state):
        count = Count()
        while state.epoch < EPOCHS:
            common = state.sampler.common_batches(BATCH) if is_ddl else len(loader)
            for batch, ids in enumerate(loader):
                count.step(state.model, state.optimizer, state.epoch, batch, ids, hvd.rank(), hvd.size())
                state.sampler.record_batch(batch, BATCH)
                if batch % COMMIT == COMMIT - 1 and batch < common:
                    state.commit()
                    count.commit()
            if is_ddl:
                hvd.join()
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)
            state.commit()
            count.commit()

    hvd.init()
    sampler = hvd.elastic.ElasticSampler(range(SAMPLES))
    loader = torch.utils.data.DataLoader(torch.arange(SAMPLES), BATCH, sampler=sampler)
    stepping = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    train(hvd.elastic.TorchState(model, stepping, sampler=sampler, epoch=0))


def train_from_checkpoints():
    """DistributedDataParallel: rank 0 saves, and all go on from there with as many ranks."""
    import torch.distributed as dist
    dist.init_process_group("gloo")
    rank, size, count, last = dist.get_rank(), dist.get_world_size(), Count(), os.path.join(folder, "last.pt")
    begin = (0, 0)
    if os.path.exists(last):
        saved = torch.load(last)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        begin = saved["begin"]
    net = torch.nn.parallel.DistributedDataParallel(model)
    sampler = torch.utils.data.DistributedSampler(range(SAMPLES), size, rank)
    loader = torch.utils.data.DataLoader(torch.arange(SAMPLES), BATCH, sampler=sampler)

    def save(epoch, batch):
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "begin": (epoch, batch)},
                       last + ".new")
            os.rename(last + ".new", last)
        dist.barrier()
        count.commit()

    for epoch in range(begin[0], EPOCHS):
        sampler.set_epoch(epoch)
        for batch, ids in enumerate(loader):
            if (epoch, batch) < begin:
                continue
            count.step(net, optimizer, epoch, batch, ids, rank, size)
            if batch % COMMIT == COMMIT - 1:
                save(epoch, batch + 1)
        save(epoch + 1, 0)
    sys.stdout.flush()
    os._exit(0)  # a late thread of gloo may abort a process that ends


if way == "ddp":
    train_from_checkpoints()
elif way == "ddl":
    import ddl.torch
    train_elastic(ddl.torch)
else:
    import horovod.torch
    import horovod.torch.elastic
    train_elastic(horovod.torch)
