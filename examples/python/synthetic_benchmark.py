"""Measures how many images a second a job trains: with the gradients of a real model, and other computation.

    ddlrun -np 2 python synthetic_benchmark.py                                the step of ResNet-50 on 2 ranks
    ddlrun -np 2 python synthetic_benchmark.py --model vgg16 --compare ddp    beside DistributedDataParallel on gloo
    python synthetic_benchmark.py --sizes 1,2,4 --plot efficiency.svg         a job of each size, and their efficiency

Each rank multiplies matrices on one CPU, for --image-ms an image: each layer has its share, as in the model, and the
backward pass has two thirds. When the backward part of a layer ends, its gradients are submitted, from the last layer
to the first. One process, alone, calibrates how many matrices make a step. Then all ranks multiply as many, so ranks
that disturb each other take longer. "ms beyond" is the median, over the iterations, of a step's time less that of the
step without communication in the same iteration. --list shows the models.
"""
import argparse
import json
import os
import statistics
import time

import torch

import chart
import ddl
import ddl.torch as hvd
import gradient_models

RESNET50_IMAGE_MS = 3.0  # of a GPU that trains 333 images a second
NAMES = {"none": "no communication", "ddl": "libddl", "ddp": "DDP on gloo"}
LEFT, RIGHT, RESULT = torch.rand(3, 128, 128)


def compute(units):
    for _ in range(units):
        torch.mm(LEFT, RIGHT, out=RESULT)


def units_of_step(batch, image_ms):
    """Calibrates. The other ranks have to wait meanwhile."""
    compute(500)
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        compute(100)
        times.append((time.perf_counter() - begin) / 100)
    # In the shortest time, the CPU did nothing else.
    return max(1, round(batch * image_ms / 1000 / min(times)))


class Computation(torch.autograd.Function):
    """A layer: the gradients of its parameters, the units of the forward pass, and those of the backward pass."""

    @staticmethod
    def forward(context, x, layer, *parameters):
        context.layer = layer
        compute(layer[1])
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        gradients, _, units = context.layer
        compute(units)
        return gradient, None, *gradients


class Network(torch.nn.Module):
    def __init__(self, layers, values):
        super().__init__()
        self.layers = layers
        self.parameters_of = torch.nn.ModuleList(torch.nn.ParameterList(map(torch.nn.Parameter, v)) for v in values)

    def forward(self, x):
        for layer, parameters in zip(self.layers, self.parameters_of):
            x = Computation.apply(x, layer, *parameters)
        return x


class Way:
    """A training step whose gradients are averaged by nobody ("none"), by libddl ("ddl"), or by PyTorch ("ddp")."""

    def __init__(self, name, layers, values):
        self.name = name
        self.model = Network(layers, values)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6)
        if name == "ddl":
            self.optimizer = hvd.DistributedOptimizer(self.optimizer, self.model.named_parameters())
        if name == "ddp":
            os.environ.setdefault("USE_LIBUV", "0")  # Debian 13 has built PyTorch without libuv
            torch.distributed.init_process_group("gloo")
            # Its fastest form: gradients are not copied out of the buckets.
            self.model = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)

    def seconds(self, steps):
        """What a step takes on the slowest rank."""
        hvd.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            # The gradients keep their memory, as on a GPU, so no time goes into new pages.
            self.optimizer.zero_grad(set_to_none=False)
            self.model(torch.zeros(1)).sum().backward()
            self.optimizer.step()
        taken = torch.tensor([(time.perf_counter() - begin) / steps], dtype=torch.float64)
        return hvd.allreduce(taken, op=hvd.Max, name="seconds").item()

    def check(self):
        right = torch.tensor(hvd.rank() + 1.0 if self.name == "none" else (hvd.size() + 1) / 2)
        wrong = sum(not torch.allclose(parameter.grad, right) for parameter in self.model.parameters())
        if wrong:
            raise SystemExit(f"rank {hvd.rank()}: {wrong} gradients of {NAMES[self.name]} are not the ranks' mean")


def measure(shares, options):
    """Called on each rank: steps of each way in turn. shares: of gradient_models.share_out()."""
    hvd.init()
    torch.set_num_threads(1)
    # All values are the rank + 1, so it can be told whether the means over the ranks are right.
    layers = [([torch.full(shape, hvd.rank() + 1.0) for shape in shapes], *units) for shapes, *units in shares]
    # The values of the parameters do not matter, so the ways have them in the same memory.
    values = [[torch.zeros_like(gradient) for gradient in gradients] for gradients, _, _ in layers]
    ways = [Way(name, layers, values) for name in ["none", "ddl", options.compare] if name]
    for way in ways:
        way.seconds(3)  # to warm up; DistributedDataParallel chooses its buckets in the first ones
        way.check()
    seconds = {way.name: [] for way in ways}
    for i in range(options.iterations):
        for way in ways[i % len(ways) :] + ways[: i % len(ways)]:
            seconds[way.name].append(way.seconds(options.steps))
    if options.compare:
        torch.distributed.destroy_process_group()
    results = {"ranks": hvd.size()}
    for name, times in seconds.items():
        images = [hvd.size() * options.batch / each for each in times]
        # An iteration has all ways, so the difference is free of what changes slowly on the machine.
        beyond = [1000 * (each - alone) for each, alone in zip(times, seconds["none"])]
        results[name] = {
            "images_per_second": statistics.mean(images),
            "deviation": statistics.stdev(images),
            "step_ms": statistics.median(times) * 1000,
            "beyond_ms": statistics.median(beyond),
            "all_step_ms": [each * 1000 for each in times],
        }
    return results


def ways_of(results):
    return [(name, way) for name, way in results.items() if name in NAMES]


def report(results):
    ranks = results["ranks"]
    print(f"{'':18}{'images/s of a rank':>22}{'of all ranks':>22}{'ms a step':>12}{'ms beyond':>12}")
    for name, way in ways_of(results):
        of_rank, of_all = (f"{way['images_per_second'] / n:.1f} +- {way['deviation'] / n:.1f}" for n in (ranks, 1))
        print(f"{NAMES[name]:18}{of_rank:>22}{of_all:>22}{way['step_ms']:12.2f}{way['beyond_ms']:12.2f}")
    if "ddp" in results:
        ddl_ms, ddp_ms = results["ddl"]["beyond_ms"], results["ddp"]["beyond_ms"]
        ratio = f"{ddp_ms / ddl_ms:.2f}" if min(ddl_ms, ddp_ms) > 0 else "unknown: not both are above zero"
        print(f"time beyond the step without communication: libddl {ddl_ms:.2f} ms, DDP {ddp_ms:.2f} ms, ratio {ratio}")


def report_sizes(table):
    """Adds the efficiency: the images a second of a rank, over those in the smallest job without communication."""
    print(f"{'ranks':>5}  {'':18}{'images/s':>20}{'efficiency':>12}{'ms beyond':>12}")
    for results in table:
        for name, way in ways_of(results):
            ideal = table[0]["none"]["images_per_second"] * results["ranks"] / table[0]["ranks"]
            way["efficiency"] = way["images_per_second"] / ideal
            images = f"{way['images_per_second']:.1f} +- {way['deviation']:.1f}"
            print(f"{results['ranks']:5}  {NAMES[name]:18}{images:>20}", end="")
            print(f"{way['efficiency']:12.1%}{way['beyond_ms']:12.2f}")


def draw_sizes(path, title, table):
    sizes = [results["ranks"] for results in table]
    curves = [
        chart.Curve(NAMES[name], sizes, [100 * results[name]["efficiency"] for results in table], marked=True)
        for name, _ in ways_of(table[0])
    ]
    curves.append(chart.Curve("ideal", sizes, [100] * len(sizes), dashed=True))
    chart.draw(path, [chart.Panel(title, "ranks", "efficiency [%]", curves, x_ticks=sizes, from_zero=True)])


def sizes_of(text):
    sizes = [int(size) if size.isdecimal() else 0 for size in text.split(",")]
    if sizes != sorted(set(sizes)) or sizes[0] < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a list of growing numbers, such as 1,2,4")
    return sizes


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the models")
    parser.add_argument("--model", choices=gradient_models.MODELS, default="resnet50")
    parser.add_argument("--batch", type=int, default=32, help="images of each rank in a step")
    parser.add_argument("--image-ms", type=float, help="of computation; default: 3 for ResNet-50, others by their work")
    parser.add_argument("--steps", type=int, default=5, help="of an iteration")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--compare", choices=["ddp"])
    parser.add_argument("--json", metavar="FILE", help="writes the results, with the times of all iterations")
    parser.add_argument("--sizes", type=sizes_of, metavar="N,...", help="starts a job of each size; not under ddlrun")
    parser.add_argument("--hosts", help="of these jobs, as for ddlrun -H; default: this machine")
    parser.add_argument("--plot", type=chart.picture_path, metavar="FILE", help="draws the efficiency of the sizes")
    options = parser.parse_args()
    if options.image_ms is None:
        options.image_ms = RESNET50_IMAGE_MS * gradient_models.work(options.model) / gradient_models.work("resnet50")
    if min(options.batch, options.steps, options.iterations - 1) < 1 or options.image_ms <= 0:
        parser.error("--batch, --steps and --image-ms are above zero, and --iterations is at least 2")
    is_rank = "PMIX_RANK" in os.environ
    if options.sizes and is_rank:
        parser.error("--sizes starts jobs itself: run the program without ddlrun")
    if not options.sizes and (options.plot or options.hosts):
        parser.error("--plot and --hosts need --sizes")
    if options.compare and not options.sizes and not is_rank:
        parser.error("--compare needs ranks: start the program by ddlrun, or give --sizes")
    return options


def main():
    options = parse()
    if options.list:
        print("\n".join(map(gradient_models.describe, gradient_models.MODELS)))
        return
    torch.set_num_threads(1)
    title = f"{options.model}, {options.batch} images a rank and step, {options.image_ms:.3g} ms each"
    if options.sizes:
        print(title, flush=True)
        shares = gradient_models.share_out(options.model, units_of_step(options.batch, options.image_ms))
        table = [ddl.run(measure, (shares, options), np=size, hosts=options.hosts)[0] for size in options.sizes]
        report_sizes(table)
        cpus = len(os.sched_getaffinity(0))
        if not options.hosts and options.sizes[-1] > cpus:
            print(f"This machine has {cpus} CPUs for the ranks: more ranks share them, which lowers the efficiency.")
        results = {"sizes": table}
        if options.plot:
            draw_sizes(options.plot, title, table)
    else:
        hvd.init()
        units = units_of_step(options.batch, options.image_ms) if hvd.rank() == 0 else None
        results = measure(gradient_models.share_out(options.model, hvd.broadcast_object(units)), options)
        if hvd.rank() != 0:
            return
        print(f"{gradient_models.describe(options.model)}\n{title}, {hvd.size()} ranks")
        report(results)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"model": options.model, "batch": options.batch, "image_ms": options.image_ms, **results}, file)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ddl.RunError) as error:
        raise SystemExit(f"synthetic_benchmark.py: {str(error).splitlines()[0]}") from None
