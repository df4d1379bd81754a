"""Teaches a small neural network the function y = sin(2 pi x) + sin(4 pi x) on [-1, 1], on several ranks.

    ddlrun -np 4 python function_approximation.py              one network, each rank trains on its share of samples
    ddlrun -np 4 python function_approximation.py --ensemble   a network on each rank; their mean, and their spread

The result of the first form is the same on every number of ranks, but for the rounding of sums.
"""
import argparse
import math

import torch

import ddl.torch as hvd


def target(x):
    return torch.sin(2 * math.pi * x) + torch.sin(4 * math.pi * x)


def network(seed):
    torch.manual_seed(seed)
    sizes = [1, 48, 48, 1]
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--samples", type=int, default=240)
    parser.add_argument("--ensemble", action="store_true", help="a network on each rank")
    options = parser.parse_args()

    hvd.init()
    net = network(seed=hvd.rank() if options.ensemble else 0)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    x = torch.linspace(-1, 1, options.samples).unsqueeze(1)
    if options.ensemble:
        mine = x
    else:
        # The mean over all samples is the mean of the ranks' means only if all have the same number of samples.
        if options.samples % hvd.size():
            raise SystemExit(f"--samples {options.samples} are not the same number for each of {hvd.size()} ranks")
        mine = x[hvd.rank() :: hvd.size()]
        optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters())
    for epoch in range(options.epochs):
        optimizer.zero_grad()
        loss = (net(mine) - target(mine)).pow(2).mean()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % (options.epochs // 4 or 1) == 0:
            mean = hvd.allreduce(loss.detach(), name="loss")
            if hvd.rank() == 0:
                print(f"epoch {epoch + 1:5}  loss {mean.item():.6f}", flush=True)

    with torch.no_grad():
        outputs = hvd.allgather(net(x).reshape(1, -1), name="outputs")
    if hvd.rank() == 0:
        rmse = (outputs.mean(dim=0) - target(x).squeeze()).pow(2).mean().sqrt().item()
        way, spread = "data-parallel", ""
        if options.ensemble:
            way = "ensemble"
            spread = f", spread {outputs.std(dim=0, unbiased=False).mean().item():.4f}"
        print(f"{hvd.size()} ranks, {way}: rmse {rmse:.6f}{spread}")


if __name__ == "__main__":
    main()
