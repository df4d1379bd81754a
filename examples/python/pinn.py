"""Solves -u'' = f on [-1, 1] with u(-1) = u(1) = 0 by a physics-informed network, on several ranks.

    ddlrun -np 4 python pinn.py                   one network, each rank has its part of the interval
    ddlrun -np 4 python pinn.py --form ensemble   a network on each rank; their mean, and their spread
    ddlrun -np 4 python pinn.py --form problems   a network on each rank, which solves a problem of its own

f is (k pi)^2 sin(k pi x), so u is sin(k pi x), and the error can be told. k is --waves, or the rank + 1 in the last
form. The network never sees u: it learns from the residual -u'' - f at points of the interval (Raissi et al. 2019,
https://doi.org/10.1016/j.jcp.2018.10.045). The result of the first form is the same on every number of ranks, but for
the rounding of sums.
"""
import argparse
import math

import torch

import chart
import ddl.torch as hvd
from ddl.torch.training import LearningRateSchedule


class Solution(torch.nn.Module):
    """u(x) = (1 - x^2) N(x): the factor makes the boundary values zero, whatever the network N is."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        layers = []
        for inputs, outputs in ((1, 24), (24, 24), (24, 1)):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.Tanh()]
        self.network = torch.nn.Sequential(*layers[:-1])

    def forward(self, x):
        # A network with first weights of this size finds waves on the interval sooner.
        return (1 - x**2) * self.network(math.pi * x)


def exact(x, waves):
    return torch.sin(waves * math.pi * x)


def residual(solution, x, waves):
    """-u'' - f at the points x, over the size of f."""
    u = solution(x)
    # A point's u depends on this point alone, so the gradient of the sum has the derivative at each point.
    (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
    return -curvature / (waves * math.pi) ** 2 - exact(x, waves)


def train(solution, points, waves, options):
    optimizer = torch.optim.Adam(solution.parameters(), lr=0.02)
    if options.form == "data-parallel":
        optimizer = hvd.DistributedOptimizer(optimizer, solution.named_parameters())
    schedule = LearningRateSchedule(optimizer, lambda done: 0.01**done)  # to a hundredth
    for epoch in range(options.epochs):
        schedule.step(epoch / options.epochs)
        optimizer.zero_grad()
        loss = residual(solution, points, waves).pow(2).mean()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % (options.epochs // 4 or 1) == 0:
            mean = hvd.allreduce(loss.detach(), name="loss").item()
            if hvd.rank() == 0:
                print(f"epoch {epoch + 1:5}  loss {mean:.3e}", flush=True)


def report(x, outputs, form, waves):
    """On rank 0. outputs: what each rank's network gives for x."""
    if form == "problems":
        errors = [output - exact(x, rank + 1) for rank, output in enumerate(outputs)]
        for rank, error in enumerate(errors):
            print(f"rank {rank}: u = sin({rank + 1} pi x): largest error {error.abs().max().item():.6f}")
        worst = max(error.abs().max().item() for error in errors)
        print(f"{len(outputs)} ranks, problems: largest error of all {worst:.6f}", flush=True)
        return
    error = (outputs.mean(dim=0) - exact(x, waves)).abs()
    print(f"{len(outputs)} ranks, {form}: largest error {error.max().item():.6f}, rmse {rms(error):.6f}")
    if form == "ensemble":
        alone = ", ".join(f"{rms(output - exact(x, waves)):.6f}" for output in outputs)
        print(f"rmse of each network: {alone}; mean spread {spread(outputs).mean().item():.6f}", flush=True)


def rms(values):
    return values.pow(2).mean().sqrt().item()


def spread(outputs):
    return outputs.std(dim=0, unbiased=False)


def draw(path, x, outputs, form, waves):
    if form == "problems":
        named = [(f"rank {rank}", output, None, exact(x, rank + 1)) for rank, output in enumerate(outputs)]
    elif form == "ensemble":
        label = f"mean of {len(outputs)} networks, with their spread"
        named = [(label, outputs.mean(dim=0), spread(outputs).tolist(), exact(x, waves))]
    else:
        named = [("network", outputs[0], None, exact(x, waves))]
    xs = x.tolist()
    solutions = [chart.Curve(label, xs, u.tolist(), band) for label, u, band, _ in named]
    if form != "problems":
        solutions.append(chart.Curve("exact", xs, exact(x, waves).tolist(), dashed=True))
    errors = [chart.Curve(label, xs, (u - right).tolist(), band) for label, u, band, right in named]
    title = f"-u'' = f on {len(outputs)} ranks, {form}"
    chart.draw(path, [chart.Panel(title, "x", "u", solutions), chart.Panel("Error", "x", "u - exact u", errors)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", choices=["data-parallel", "ensemble", "problems"], default="data-parallel")
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--points", type=int, default=120, help="of all ranks, or of each if they do not share them")
    parser.add_argument("--waves", type=int, default=2, metavar="K")
    parser.add_argument("--plot", type=chart.picture_path, metavar="FILE", help="writes a figure, such as pinn.svg")
    options = parser.parse_args()
    if min(options.epochs, options.points, options.waves) < 1:
        parser.error("--epochs, --points and --waves are at least 1")

    hvd.init()
    torch.set_num_threads(1)  # the network is too small for more
    torch.set_default_dtype(torch.float64)  # second derivatives lose half of the digits
    points = torch.linspace(-1, 1, options.points).unsqueeze(1)
    if options.form == "data-parallel":
        # The mean over all points is the mean of the ranks' means only if all have the same number of points.
        if options.points % hvd.size():
            raise SystemExit(f"--points {options.points} are not the same number for each of {hvd.size()} ranks")
        points = points.chunk(hvd.size())[hvd.rank()]
    waves = hvd.rank() + 1 if options.form == "problems" else options.waves
    solution = Solution(seed=hvd.rank() if options.form == "ensemble" else 0)
    train(solution, points.clone().requires_grad_(), waves, options)

    x = torch.linspace(-1, 1, 201)
    with torch.no_grad():
        outputs = hvd.allgather(solution(x.unsqueeze(1)).reshape(1, -1), name="outputs")
    if hvd.rank() == 0:
        report(x, outputs, options.form, waves)
        if options.plot:
            draw(options.plot, x, outputs, options.form, waves)


if __name__ == "__main__":
    main()
