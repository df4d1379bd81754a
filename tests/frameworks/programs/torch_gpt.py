"""A small GPT, trained as nanoGPT's train.py does it: by DistributedDataParallel with accumulated gradients, and from a
checkpoint if there is one. The loss is the same over every backend.

    ddlrun -np 2 python torch_gpt.py --steps N --checkpoint FILE --backend ddl
"""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import problem

TEXT = ("Each rank reads a part of the text, guesses the letter that comes next, and learns from what it got wrong. "
        "Then all ranks add up what they have learned, so that the next guess of each is that of all. ") * 4
LENGTH, WIDTH, HEADS, LAYERS, BATCH, PASSES = 16, 32, 4, 2, 8, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        parts = self.attention(self.first(x)).chunk(3, dim=-1)
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts]
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).flatten(-2))
        return x + self.feed(self.second(x))


class GPT(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters))

    def forward(self, x):
        return self.head(self.blocks(self.letters(x) + self.places(torch.arange(x.shape[1]))))


parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="gloo")
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--checkpoint", required=True)
options = parser.parse_args()
os.environ.setdefault("USE_LIBUV", "0")  # Debian 13 has built PyTorch without libuv
dist.init_process_group(backend=options.backend)
rank, ranks = dist.get_rank(), dist.get_world_size()

alphabet = sorted(set(TEXT))
data = torch.tensor([alphabet.index(letter) for letter in TEXT])
torch.manual_seed(1337)
model = GPT(len(alphabet))
optimizer, begin = torch.optim.AdamW(model.parameters(), lr=3e-3), 0
if os.path.exists(options.checkpoint):
    saved = torch.load(options.checkpoint)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    begin = saved["step"]
model = DistributedDataParallel(model)
for step in range(begin, begin + options.steps):
    total = torch.zeros(())
    for number in range(PASSES):
        places = torch.Generator().manual_seed(1000 * step + ranks * number + rank)
        starts = torch.randint(len(data) - LENGTH - 1, (BATCH,), generator=places)
        inputs = torch.stack([data[start : start + LENGTH] for start in starts])
        targets = torch.stack([data[start + 1 : start + LENGTH + 1] for start in starts])
        model.require_backward_grad_sync = number == PASSES - 1  # as no_sync() does, and nanoGPT
        loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()) / PASSES
        loss.backward()
        total += loss.detach()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
dist.all_reduce(total)
if rank == 0:
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
    torch.save(state, options.checkpoint)
    print(f"loss {total.item() / ranks:.4f}", flush=True)
dist.destroy_process_group()
if options.backend == "gloo":
    problem.leave()
