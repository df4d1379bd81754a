"""The last rank is killed while the computations of the others wait for it. Their error must name it."""
import os
import signal

# ddlrun asks the others to end; they are to say first what they have seen.
signal.signal(signal.SIGTERM, signal.SIG_IGN)

import ddl.jax as dj
import jax
import jax.numpy as jnp

dj.init()
rank, last = dj.rank(), dj.size() - 1
total = jax.jit(lambda x: dj.allreduce(x) + 1.0)
total(jnp.ones(4)).block_until_ready()
if rank == last:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    total(jnp.ones(4)).block_until_ready()
    print(f"rank {rank}: no error was raised", flush=True)
except (RuntimeError, ValueError) as error:
    is_told = f"rank {last} on " in str(error) and " died " in str(error)
    print(f"rank {rank}: {'told' if is_told else 'not told'}: {error}", flush=True)
os._exit(3)
