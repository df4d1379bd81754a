"""Ranks of jobs are killed; the others, and new ones, go on with all of a sharded optimizer's state, and with gradients
that are views of buffers of a job's generation."""
import os
import re
import signal
import subprocess
import sys

STEPS = 12


def train_as_a_rank(victim, size, way):
    """victim: dies in generation 0 between two commits. size: of the generation that ends the job."""
    import torch

    import ddl
    import ddl.torch as hvd

    def wrapped(net):
        optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
        if way == "views":
            return hvd.DistributedOptimizer(optimizer, net.named_parameters(), gradient_as_bucket_view=True)
        if way == "sharded":
            return hvd.ShardedOptimizer(optimizer, net.named_parameters(), bucket_cap_mb=1e-3)
        return optimizer

    def model():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(5, 31), torch.nn.Tanh(), torch.nn.Linear(31, 1))

    def step_of(net, optimizer, step):
        torch.manual_seed(step)  # all ranks have the same gradients, so their number makes no difference
        inputs = torch.rand(8, 5)
        optimizer.zero_grad()
        (net(inputs) - inputs.sum(dim=1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()

    @hvd.elastic.run
    def train(state):
        print(f"generation {ddl.elastic.generation()}: step {state.step} of rank {ddl.rank()}", flush=True)
        while state.step < STEPS or ddl.size() != size:
            if ddl.elastic.generation() > 0 and state.step >= 8 and ddl.size() != size:
                state.commit()  # waits for the last rank without training
                continue
            step_of(state.model, state.optimizer, state.step)
            state.step += 1
            if ddl.elastic.generation() == 0 and state.step == 7 and ddl.rank() == victim:
                os.kill(os.getpid(), signal.SIGKILL)
            if state.step % 2 == 0:
                state.commit()
        alone = model()
        optimizer = torch.optim.Adam(alone.parameters(), lr=0.05)
        for step in range(state.step):
            step_of(alone, optimizer, step)
        for one, expected in zip(state.model.parameters(), alone.parameters()):
            # The mean of three equal numbers may differ from them in the last bit.
            assert torch.allclose(one, expected, rtol=1e-4, atol=1e-5), (one - expected).abs().max()

    hvd.init()
    net = model()
    train(hvd.elastic.TorchState(net, wrapped(net), step=0))


def run_job(victim, size, way, *options):
    job = subprocess.run(
        ["ddlrun", "--timeout", "100", "--min-np", "1", "-H", "localhost:2,127.0.0.1:2", *options,
         sys.executable, __file__, *map(str, (victim, size, way))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=150,
    )
    return job.returncode, job.stdout + job.stderr


STAY_AWAY = "--blacklist-cooldown-range", "3600", "3600"
COME_BACK = "--blacklist-cooldown-range", "1", "1", "--elastic-settle", "0"


def main():
    for way in "sharded", "views":
        for victim, size, options, pattern in (3, 3, STAY_AWAY, "generation 1: step 6 of rank 2"), \
                (0, 4, COME_BACK, "generation 2: step [0-9]+ of rank 3"):
            status, text = run_job(victim, size, way, *options)
            assert status == 0 and re.search(pattern, text), f"{way}: exit {status}\n{text}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train_as_a_rank(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    else:
        main()
