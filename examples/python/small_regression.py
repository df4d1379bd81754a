"""What fsdp2.py, tensor_parallel.py, pipeline.py and checkpoint.py train: a curve, found by a network in 40 steps.

All of them print the loss at the end. It is the same for every way and every number of ranks, up to rounding.
"""
import argparse

import torch
import torch.distributed as dist

STEPS = 40
INPUTS = torch.linspace(-1, 1, 96).unsqueeze(1)
TARGETS = torch.sin(3 * INPUTS)


def model():
    """The same on every rank. The first two layers can be cut in pieces of one column or row."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))


def begin(description, *arguments):
    """Reads the command line and joins the other ranks. Arguments: names of more words of the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="ddl", help="of torch.distributed: ddl, gloo, ...")
    for name in arguments:
        parser.add_argument(name)
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    return options, dist.get_rank(), dist.get_world_size()


def end(loss):
    """Prints the loss, on the rank that has it, and leaves the other ranks."""
    if loss is not None:
        print(f"loss {float(loss.detach()):.4f}", flush=True)
    dist.destroy_process_group()
