"""Learns to read handwritten digits (MNIST), on several ranks.

    ddlrun -np 4 python mnist.py --data DIRECTORY     with the four files of MNIST in DIRECTORY, packed by gzip or not
    ddlrun -np 4 python mnist.py                      without files: with digits that the program draws itself

What a program of one process needs to run on several ranks is in six steps, marked below.
"""
import argparse
from pathlib import Path

import torch

import ddl.torch as hvd
from ddl.torch.training import (
    DistributedSampler,
    LearningRateSchedule,
    average_metrics,
    load_checkpoint,
    save_checkpoint,
    start_alike,
    warmup,
)
from digits import BadFile, draw_digits, read_digits


def network():
    return torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 16, 5, stride=2), torch.nn.ReLU()),
        *(torch.nn.Conv2d(16, 32, 5, stride=2), torch.nn.ReLU(), torch.nn.Flatten()),
        *(torch.nn.Linear(32 * 4 * 4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)),
    )


def as_input(images, device):
    return images.to(device).unsqueeze(1).float() / 255


def accuracy(model, images, labels, device):
    """Of all samples. Each rank counts those of its share, which are not the same number on each rank."""
    mine = torch.tensor(list(DistributedSampler(labels, shuffle=False)), dtype=torch.int64)
    right = 0
    with torch.no_grad():
        for batch in mine.split(1000):
            right += int((model(as_input(images[batch], device)).argmax(dim=1).cpu() == labels[batch]).sum())
    counts = hvd.allreduce(torch.tensor([right, len(mine)]), op=hvd.Sum, name="accuracy")
    return (counts[0] / counts[1]).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIRECTORY", help="where the files of MNIST are")
    parser.add_argument("--samples", type=int, default=10000, help="to train with, without --data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32, help="samples of each rank in a step")
    parser.add_argument("--rate", type=float, default=0.02, help="the learning rate of one rank")
    parser.add_argument("--checkpoint", metavar="FILE", help="go on from this file, and write it after each epoch")
    options = parser.parse_args()
    if min(options.samples, options.epochs, options.batch) < 1:
        parser.error("--samples, --epochs and --batch are at least 1")

    # Step 1: join the job. ddlrun has told each process its rank.
    hvd.init()

    if hvd.rank() == 0 and options.checkpoint and not Path(options.checkpoint).absolute().parent.is_dir():
        raise SystemExit(f"mnist.py: {options.checkpoint} is in no folder that exists")

    # Step 2: each rank of a host has a GPU of its own, by its number on the host.
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
        torch.cuda.set_device(device)

    if options.data:
        try:
            train, test = read_digits(options.data, "train"), read_digits(options.data, "t10k")
        except BadFile as error:
            raise SystemExit(f"mnist.py: {error}") from None
    else:
        train, test = draw_digits(options.samples, seed=1), draw_digits(2000, seed=2)
    (images, labels), test = map(torch.from_numpy, train), tuple(map(torch.from_numpy, test))

    # Each rank trains with its share of the samples, in another order in each epoch. All ranks make the same number of
    # steps; what does not fill a batch on every rank is left to another epoch.
    sampler = DistributedSampler(labels)
    steps = len(labels) // (options.batch * hvd.size())
    if steps == 0:
        few = f"{len(labels)} samples are fewer than a batch of {options.batch} for each of {hvd.size()} ranks"
        raise SystemExit(f"mnist.py: {few}")

    # Step 3: a step uses the samples of all ranks, so the learning rate is that of one rank times their number. The
    # first epoch leads up to it.
    rate, growth = options.rate * hvd.size(), warmup(epochs=1)

    # Step 4: the optimizer averages the gradients of all ranks.
    torch.manual_seed(hvd.rank())
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    schedule = LearningRateSchedule(optimizer, growth)

    # Step 5: all ranks start with the parameters of rank 0, or of the checkpoint that it reads. The rates and momenta
    # of the checkpoint were those of another number of ranks, perhaps, and are not used.
    first = 0
    try:
        saved = load_checkpoint(options.checkpoint) if options.checkpoint else None
    except RuntimeError as error:
        raise SystemExit(f"mnist.py: {error}") from None
    if saved is not None:
        first = saved["epochs"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict({**saved["optimizer"], "param_groups": optimizer.state_dict()["param_groups"]})
    start_alike(model, optimizer)

    right = accuracy(model, *test, device)
    for epoch in range(first, options.epochs):
        sampler.set_epoch(epoch)
        total = 0.0
        for step, batch in enumerate(torch.tensor(list(sampler)).split(options.batch)[:steps]):
            schedule.step(epoch + step / steps)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(as_input(images[batch], device)), labels[batch].to(device))
            loss.backward()
            optimizer.step()
            total += loss.item()

        # Step 6: what is told is the mean over all ranks, and rank 0 alone prints it and writes the checkpoint.
        means = average_metrics({"loss": total / steps})
        right = accuracy(model, *test, device)
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}  loss {means['loss']:.4f}  accuracy {right:.4f}", flush=True)
        if options.checkpoint:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epochs": epoch + 1}
            save_checkpoint(options.checkpoint, state)

    if hvd.rank() == 0:
        print(f"{hvd.size()} ranks: accuracy {right:.4f} over {len(test[1])} images", flush=True)


if __name__ == "__main__":
    main()
