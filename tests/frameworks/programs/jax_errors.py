"""What is wrong with calls of ddl.jax is said in a sentence, on two ranks, and nothing hangs."""
import re
import sys
import threading

import ddl
import ddl.jax as dj
import jax
import jax.numpy as jnp
from jax.experimental import io_callback

wrong = []


def fails(name, kind, words, call):
    try:
        jax.block_until_ready(call())
        wrong.append(f"{name}: no error was raised")
    except Exception as error:
        if not isinstance(error, kind) or not re.search(words, str(error)):
            wrong.append(f"{name}: {type(error).__name__}: {error}")


XLA_ERROR = (RuntimeError, ValueError)  # JaxRuntimeError; ValueError if the function has been called before
x = jnp.arange(4.0)
summed = jax.jit(lambda x: dj.allreduce(x, name="summed"))
fails("a call before init()", ddl.InvalidArgument, r"call ddl[.]init\(\) first", lambda: summed(x))
dj.init()
rank, size = dj.rank(), dj.size()

# What is seen when the call is traced.
fails("vmap", NotImplementedError, "jax.vmap", lambda: jax.vmap(dj.allreduce)(x))
fails("complex numbers", TypeError, "complex", lambda: dj.allreduce(x.astype(complex)))
fails("a number without rows", ValueError, "rows", lambda: dj.allgather(1.0))
fails("unequal parts", ValueError, f"{size + 1} rows", lambda: dj.alltoall(jnp.ones(size + 1)))
fails("rows of others", ValueError, "rows must be", lambda: dj.allgather(x, rows=[1] * size))
fails("a barrier of nothing", ValueError, "orders nothing", lambda: jax.jit(dj.barrier)())
fails("the gradient of a maximum", NotImplementedError, "SUM",
      lambda: jax.grad(lambda x: dj.allreduce(x, dj.MAX).sum())(x))

# What libddl says. The job goes on.
fails("a sum of bool", XLA_ERROR, "there is no sum of bool", lambda: dj.allreduce(x > 1))
fails("a root that is not there", XLA_ERROR, "root", lambda: dj.broadcast(x, size))
fails("other sizes", XLA_ERROR, "summed.*rank 1|rank 1.*summed", lambda: summed(jnp.ones(rank + 1)))
fails("other types", XLA_ERROR, "summed", lambda: summed(jnp.ones(3, [jnp.float32, jnp.int32][rank])))
fails("other rows", XLA_ERROR, "elements", lambda: dj.allgather(jnp.ones(rank + 1)))
if not (summed(x) == size * x).all():
    wrong.append("a sum after the errors is not right")

# Rank 0 leaves in the middle of a computation, for which rank 1 does not come: an error, and no crash.
has_begun = threading.Event()


@jax.jit
def late(x):
    x = io_callback(lambda x: (has_begun.set(), x)[1], jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    return dj.allreduce(x, name="late")


if rank == 0:
    waiting = threading.Thread(target=lambda: fails("a computation that was left", XLA_ERROR, "left", lambda: late(x)))
    waiting.start()
    has_begun.wait()
    ddl.shutdown()
    waiting.join()
ddl.shutdown()
fails("a computation after shutdown()", XLA_ERROR, r"call init\(\)", lambda: summed(x))
for one in wrong:
    print(f"rank {rank}: {one}", file=sys.stderr, flush=True)
print(f"jax: rank {rank}: {f'{len(wrong)} wrong' if wrong else 'right'}", flush=True)
sys.exit(bool(wrong))
