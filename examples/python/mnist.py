"""Learns to read handwritten digits (MNIST), on several ranks.

    ddlrun -np 4 python mnist.py --data DIRECTORY     with the four files of MNIST in DIRECTORY, packed by gzip or not
    ddlrun -np 4 python mnist.py                      without files: with digits that the program draws itself

What a program of one process needs to run on several ranks is in six steps, marked below.
"""
import argparse
import gzip
import struct
import zlib
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

SIDE = 28
# Zero to nine, five columns each.
GLYPHS = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""


class BadFile(Exception):
    """A file of MNIST that is missing or broken. The text names it."""


def read_idx(path, dimensions):
    """A file in MNIST's format IDX, as a tensor of bytes: a magic number of two zeros, the type (8: bytes) and the
    number of dimensions; the dimensions, each of four bytes, the highest first; the values."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise BadFile(f"{path} cannot be read: {error}") from None
    begin = 4 + 4 * dimensions
    magic = 0x0800 + dimensions
    if len(data) < begin:
        raise BadFile(f"{path} is no IDX file: it has {len(data)} bytes, and its header alone would have {begin}")
    found, *shape = struct.unpack(f">{1 + dimensions}I", data[:begin])
    if found != magic:
        raise BadFile(f"{path} is no IDX file of {dimensions} dimensions: it begins with {found:#x}, not {magic:#x}")
    expected = begin + torch.Size(shape).numel()
    if len(data) != expected:
        by_shape = " x ".join(map(str, shape))
        raise BadFile(f"{path} has {len(data)} bytes, and {by_shape} values would make {expected}: fetch it again")
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)[begin:].reshape(shape)


def read_digits(folder, kind):
    """Images and labels of kind "train" or "t10k"."""
    if not folder.is_dir():
        raise BadFile(f"there is no directory {folder}")
    paths = []
    for name in (f"{kind}-images-idx3-ubyte", f"{kind}-labels-idx1-ubyte"):
        found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
        if not found:
            raise BadFile(f"neither {name} nor {name}.gz is in {folder}")
        paths.append(found[0])
    images, labels = read_idx(paths[0], 3), read_idx(paths[1], 1)
    count, height, width = images.shape
    if (height, width) != (SIDE, SIDE) or count == 0:
        raise BadFile(f"{paths[0]} has {count} images of {height} x {width}; those of MNIST are {SIDE} x {SIDE}")
    if count != len(labels):
        raise BadFile(f"{paths[0]} has {count} images, and {paths[1]} has {len(labels)} labels")
    if labels.max() > 9:
        raise BadFile(f"{paths[1]} has the label {labels.max()}: digits are 0 to 9")
    return images, labels.long()


def draw_digits(count, seed):
    """Digits of GLYPHS, each shifted, scaled, turned and sheared by chance, with noise."""
    rows = GLYPHS.split("\n")[1:-1]
    small = torch.tensor([[[row[6 * n + i] == "#" for i in range(5)] for row in rows] for n in range(10)])
    large = torch.nn.functional.interpolate(small[:, None].float(), scale_factor=3)  # 21 x 15
    glyphs = torch.nn.functional.pad(large, (6, 7, 3, 4))
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=random)
    turn, shear, shift_x, shift_y = (torch.rand(4, count, generator=random) - 0.5) * 0.5
    scale = 0.9 + 0.5 * torch.rand(count, generator=random)  # what is read from, so a larger one makes a smaller digit
    cos, sin = scale * turn.cos(), scale * turn.sin()
    change = torch.stack([cos, shear - sin, shift_x, sin, cos, shift_y], dim=1).reshape(count, 2, 3)
    grid = torch.nn.functional.affine_grid(change, [count, 1, SIDE, SIDE], align_corners=False)
    images = torch.nn.functional.grid_sample(glyphs[labels], grid, align_corners=False)[:, 0]
    images += 0.25 * torch.randn(images.shape, generator=random)
    return (images.clamp(0, 1) * 255).byte(), labels


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
    images, labels = train

    # Step 3: each rank trains with its share of the samples, in another order in each epoch. All ranks make the same
    # number of steps; what does not fill a batch on every rank is left to another epoch.
    sampler = DistributedSampler(labels)
    steps = len(labels) // (options.batch * hvd.size())
    if steps == 0:
        few = f"{len(labels)} samples are fewer than a batch of {options.batch} for each of {hvd.size()} ranks"
        raise SystemExit(f"mnist.py: {few}")

    # Step 4: a step uses the samples of all ranks, so the learning rate is that of one rank times their number. The
    # first epoch leads up to it. The optimizer averages the gradients of all ranks.
    torch.manual_seed(hvd.rank())
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    schedule = LearningRateSchedule(optimizer, warmup(epochs=1))

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
