"""JAX of several processes: jax.distributed.initialize() without arguments, and an array of all processes."""
import os
import sys

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

jax.distributed.initialize()
rank, size = jax.process_index(), jax.process_count()
ranks = multihost_utils.process_allgather(jnp.array([rank]))
is_right = ranks.ravel().tolist() == list(range(size)) and len(jax.devices()) == size
is_right = is_right and rank == int(os.environ["SLURM_PROCID"])
print(f"jax: process {rank} of {size}, {len(jax.devices())} devices: {'right' if is_right else f'wrong: {ranks}'}",
      flush=True)
sys.exit(0 if is_right else 1)
