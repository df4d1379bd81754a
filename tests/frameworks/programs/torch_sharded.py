"""A transformer's block trained by AdamW whose state is divided among the ranks: by ddl.torch, by PyTorch's
ZeroRedundancyOptimizer and by DeepSpeed, beside one process that has all of the data."""
import deepspeed
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

import ddl.torch as hvd
import problem

STEPS, ROWS, WIDTH = 5, 8, 24


def model():
    torch.manual_seed(1)
    return torch.nn.TransformerEncoderLayer(WIDTH, 4, 41, dropout=0.0, batch_first=True)


def adamw(net):
    return torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)


def loss_of(net, step, rank, size):
    torch.manual_seed(100 + step)
    inputs = torch.rand(ROWS, 6, WIDTH)[rank::size]
    return (net(inputs) - inputs.flip(1)).pow(2).mean()


def train(net, optimizer, rank, size, called=None):
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(called or net, step, rank, size).backward()
        optimizer.step()
    getattr(optimizer, "wait_for_parameters", lambda: None)()  # they are read without calling a module
    return torch.cat([one.detach().flatten() for one in net.parameters()])


def by_ddl(rank, size):
    net = model()
    return train(net, hvd.ShardedOptimizer(adamw(net), net.named_parameters(), model=net), rank, size)


def by_data_parallel(rank, size):
    net = model()
    return train(net, hvd.DistributedOptimizer(adamw(net), net.named_parameters()), rank, size)


def by_pytorch(rank, size):
    net = model()
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=0.01, weight_decay=0.1)
    return train(net, optimizer, rank, size, torch.nn.parallel.DistributedDataParallel(net))


def by_deepspeed(rank, size):
    net = model()
    config = {
        "train_micro_batch_size_per_gpu": ROWS // size, "zero_optimization": {"stage": 1}, "gradient_clipping": 0.0,
        "zero_allow_untested_optimizer": True,
    }
    engine, _, _, _ = deepspeed.initialize(model=net, optimizer=adamw(net), config=config)
    for step in range(STEPS):
        engine.backward(loss_of(engine, step, rank, size))
        engine.step()
    return torch.cat([one.detach().flatten() for one in net.parameters()])


hvd.init()
rank, size = hvd.rank(), hvd.size()
deepspeed.init_distributed("gloo")
alone = model()
expected = train(alone, adamw(alone), 0, 1)
wrong = []
for way in (by_ddl, by_data_parallel, by_pytorch, by_deepspeed):
    found = way(rank, size)
    # Each step of AdamW moves a weight by about 0.01, whatever its gradient, so rounding shows in the smallest ones.
    if not torch.allclose(found, expected, rtol=1e-3, atol=1e-3):
        wrong.append(f"{way.__name__} differs by {(found - expected).abs().max()}")
if not torch.equal(by_ddl(rank, size), by_data_parallel(rank, size)):
    wrong.append("the bits are not those of data-parallel training")
print(f"sharded: rank {rank} of {size}: {'; '.join(wrong) or 'right'}\n", end="", flush=True)
hvd.shutdown()
dist.destroy_process_group()
problem.leave()
