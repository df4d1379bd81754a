"""100 allreduces of one compiled function that do not depend on each other, in another order on each rank, all on one
CPU: XLA has one thread there, and begins what comes first. The test ends by its time limit if they wait for each other.
"""
import os
import random

os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])

import ddl.jax as dj
import jax
import jax.numpy as jnp

COUNT = 100
dj.init()
rank, size = dj.rank(), dj.size()
order = list(range(COUNT))
random.Random(rank).shuffle(order)


@jax.jit
def all_of(xs):
    results = {i: dj.allreduce(xs[i], name=f"tensor {i}") for i in order}
    return [results[i] for i in range(COUNT)]


for step in range(3):
    results = all_of([jnp.full(1000 + i, float(i * (rank + step))) for i in range(COUNT)])
    factor = size * (size - 1) / 2 + size * step
    is_right = all(len(one) == 1000 + i and (one == i * factor).all() for i, one in enumerate(results))
    assert is_right, results
print(f"jax: rank {rank} on CPU {os.sched_getaffinity(0)}: right", flush=True)
