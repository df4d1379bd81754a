"""A rank of the jobs of elastic_kills_program.py, and what the job must come to.

Ranks train a model of PyTorch on samples, each of which is trained on once in each epoch. What they have trained on is a
part of their state, so it goes back with it when a rank is lost, and so do numbers of which each rank has a part of its
own. Rank 0 writes down where each generation begins; replay() makes the same steps in one process.
"""
import json
import os
import sys

import numpy
import torch

import ddl.elastic
import ddl.torch as hvd

SAMPLES = 103  # for most numbers of ranks, some ranks have a sample more
BATCH = 4
SEED = 7
INPUTS = torch.linspace(-1, 1, SAMPLES, dtype=torch.float64).unsqueeze(1)
TARGETS = torch.sin(3 * INPUTS)


def model_and_optimizer():
    torch.manual_seed(SEED)
    model = torch.nn.Sequential(torch.nn.Linear(1, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def gradients(model, samples):
    """Their sum over the samples, as one array."""
    model.zero_grad()
    (model(INPUTS[samples]) - TARGETS[samples]).square().sum().backward()
    return numpy.concatenate([one.grad.numpy().ravel() for one in model.parameters()])


def update(model, optimizer, sums, count):
    begin = 0
    for one in model.parameters():
        one.grad = torch.from_numpy(sums[begin : begin + one.numel()]).reshape(one.shape) / count
        begin += one.numel()
    optimizer.step()


def weights(model):
    return [float(number) for one in model.parameters() for number in one.detach().ravel()]


def part_of(parts, rank, size):
    return numpy.array_split(numpy.concatenate(parts), size)[rank].copy()


@hvd.elastic.run
def train(state, folder):
    done = state.sampler.state_dict()["done"]
    if hvd.rank() == 0:
        with open(f"{folder}/history", "a", encoding="utf-8") as file:
            file.write(f"{json.dumps([hvd.size(), state.epoch, done])}\n")
    print(f"generation {ddl.elastic.generation()}: rank {hvd.rank()} of {hvd.size()}, pid {os.getpid()}, epoch "
          f"{state.epoch}", flush=True)
    while True:
        common = state.sampler.common_batches(BATCH)
        batches = list(torch.utils.data.BatchSampler(state.sampler, BATCH, drop_last=False))
        for i in range(common + 1):  # the last ones may be shorter, or absent
            own = batches[i] if i < len(batches) else []
            trained = numpy.zeros(SAMPLES + 1)
            trained[own] = 1
            trained[SAMPLES] = os.path.exists(f"{folder}/stop")
            together = ddl.allreduce(numpy.concatenate([trained, gradients(state.model, own)]))
            trained, sums = together[: SAMPLES + 1], together[SAMPLES + 1 :]
            if own:
                state.sampler.record_batch(i, BATCH)
            if trained[:SAMPLES].any():
                update(state.model, state.optimizer, sums, trained[:SAMPLES].sum())
            state.times += trained[:SAMPLES]
            state.part.value += 1
            state.batches += 1
            if i % 3 == 2 and i < common:
                state.commit()
        assert (state.times == 1).all(), f"epoch {state.epoch}: {state.times}"
        whole = numpy.concatenate(ddl.allgather_object(state.part.value))
        assert (whole == numpy.arange(SAMPLES) + state.batches).all(), f"{state.batches} batches: {whole}"
        state.times[:] = 0
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()
        if trained[SAMPLES] > 0:
            return


def run_as_rank(folder):
    hvd.init()
    model, optimizer = model_and_optimizer()
    state = hvd.elastic.TorchState(
        model, optimizer, sampler=hvd.elastic.ElasticSampler(range(SAMPLES), seed=SEED), times=numpy.zeros(SAMPLES),
        epoch=0, batches=0, part=ddl.elastic.Shard(part_of([numpy.arange(SAMPLES)], hvd.rank(), hvd.size()), part_of),
    )
    train(state, folder)
    print(f"done after {state.epoch} epochs", flush=True)
    if hvd.rank() == 0:
        with open(f"{folder}/result", "w", encoding="utf-8") as file:
            json.dump([state.epoch, weights(state.model)], file)


def kept_steps(history, end):
    """[ranks, from, to] of what is not done again, in order. A place is (epoch, samples of it that are done).

    history: [ranks, epoch, done] of each generation. It has begun at a commit of one before it, not always the last.
    """
    kept = []
    for ranks, *begin in history:
        while kept and kept[-1][1] >= begin:
            kept.pop()
        if kept:
            kept[-1][2] = begin
        kept.append([ranks, begin, end])
    return kept


def replay(history, epochs):
    """The weights after these epochs. All ranks of a step together have the next samples of the epoch's order."""
    model, optimizer = model_and_optimizer()
    for ranks, begin, end in kept_steps(history, [epochs, 0]):
        epoch, done = begin
        while [epoch, done] < end:
            generator = torch.Generator()
            generator.manual_seed(SEED * 1_000_003 + epoch)
            order = torch.randperm(SAMPLES, generator=generator).tolist()
            samples = order[done : done + ranks * BATCH]
            update(model, optimizer, gradients(model, samples), len(samples))
            done += ranks * BATCH
            if done >= SAMPLES:
                epoch, done = epoch + 1, 0
        assert [epoch, done] == end, f"{ranks} ranks do not come from {begin} to {end}"
    return weights(model)


def check_result(folder):
    """Errors: AssertionError if the weights are not those of the same steps without losses."""
    with open(f"{folder}/history", encoding="utf-8") as file:
        history = [json.loads(line) for line in file]
    with open(f"{folder}/result", encoding="utf-8") as file:
        epochs, found = json.load(file)
    expected = replay(history, epochs)
    assert numpy.allclose(found, expected, rtol=1e-6, atol=1e-9), f"{found} instead of {expected}"
    return len(history), epochs


if __name__ == "__main__":
    run_as_rank(sys.argv[1])
