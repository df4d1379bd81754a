"""The functions of ddl.jax against what NumPy computes of all ranks' arrays, under jax.jit and outside: types, pytrees,
gradients, process sets, loops, and names."""
import sys

import ddl
import ddl.jax as dj
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
dj.init()
rank, size = dj.rank(), dj.size()
wrong = []


def holds(name, is_so):
    if not is_so:
        wrong.append(name)
        print(f"rank {rank}: {name} is not so", file=sys.stderr, flush=True)


def same(name, value, wanted):
    value, wanted = np.asarray(value), np.asarray(wanted)
    is_same = value.shape == wanted.shape and value.dtype == wanted.dtype and np.array_equal(value, wanted)
    holds(name if is_same else f"{name}: {value} is {wanted}", is_same)


def of(one):
    """A rank's array, of small integers: sums and products are exact in all types."""
    return (np.arange(6).reshape(2, 3) + one) % 5 + 1


everyone = [of(one) for one in range(size)]
mine = jnp.asarray(everyone[rank], jnp.float32)
twice = {"under jit": jax.jit, "outside of jit": lambda function: function}

for where, made in twice.items():
    operations = {dj.SUM: np.add, dj.MIN: np.minimum, dj.MAX: np.maximum, dj.PRODUCT: np.multiply}
    for op, function in operations.items():
        value = made(lambda x: dj.allreduce(x, op))(mine)
        same(f"operation {op} {where}", value, function.reduce(np.float32(everyone)))
    same(f"allgather {where}", made(dj.allgather)(mine), np.concatenate(np.float32(everyone)))
    rows = [one + 1 for one in range(size)]
    value = made(lambda x: dj.allgather(x, rows=rows))(jnp.full((rank + 1, 2), rank))
    same(f"allgather of different rows {where}", value, np.repeat(np.arange(size), rows)[:, None].repeat(2, 1))
    value = made(lambda tree: dj.broadcast(tree, size - 1))({"a": mine, "b": [mine[0], jnp.int32(rank)]})
    same(f"broadcast {where}", value["a"], np.float32(everyone[-1]))
    same(f"broadcast of a number {where}", value["b"][1], np.int32(size - 1))
    value = made(dj.alltoall)(jnp.arange(2 * size) + 100 * rank)
    same(f"alltoall {where}", value, np.concatenate([100 * one + 2 * rank + np.arange(2) for one in range(size)]))
    value = made(dj.reduce_scatter)(jnp.arange(2 * size + 1.0))
    begin = 2 * rank + min(rank, 1)
    same(f"reduce_scatter {where}", value, size * np.arange(begin, begin + 2 + (rank == 0), dtype=np.float64))
    tree = made(dj.average_gradients)({"w": mine, "b": (jnp.float64(rank), jnp.zeros((0, 3)))})
    same(f"average_gradients {where}", tree["w"], np.float32(sum(everyone)) / np.float32(size))
    same(f"the average of a number {where}", tree["b"][0], np.float64((size - 1) / 2))
    same(f"the average of no elements {where}", tree["b"][1], np.zeros((0, 3)))
    same(f"barrier {where}", made(dj.barrier)(mine), np.float32(everyone[rank]))
dj.barrier()
value = dj.allreduce(mine, dj.SUM, prescale=2.0, postscale=0.5, name="scaled")
same("scales", value, np.float32(sum(everyone)))

types = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
         "float64", "float8_e4m3fn", "float8_e5m2"]
values = {one: jnp.asarray([1, rank]).astype(one) for one in types}
for one, value in jax.jit(dj.grouped_allreduce)(values).items():
    same(f"the sum of {one}", value, np.asarray(jnp.asarray([size, sum(range(size))]).astype(one)))
value = dj.allreduce(jnp.asarray([rank == 0, True]), dj.LOGICAL_AND)
same("the conjunction of bool", value, np.asarray([size == 1, True]))

# Gradients: of the sum of all ranks' losses for an allreduce, else of their mean, as with ddl.torch.
weights = jnp.asarray(of(7), jnp.float32)[:, :2]


def gradient(function, x):
    outside = jax.grad(lambda x: function(x).sum())(x)
    inside = jax.jit(jax.grad(lambda x: function(x).sum()))(x)
    same("a gradient under jit", inside, outside)
    return outside


x = mine[:, :2]
wanted = size * np.asarray(weights)
same("the gradient of an allreduce", gradient(lambda x: weights * dj.allreduce(x), x), wanted)
same("that of an average", gradient(lambda x: weights * dj.allreduce(x, dj.AVERAGE), x), wanted / size)
value = gradient(lambda x: (rank + 1) * dj.broadcast(x, 0), x)
same("that of a broadcast", value, np.full_like(wanted, (size + 1) / 2 if rank == 0 else 0))
scale = jnp.arange(2.0 * size, dtype=jnp.float32)[:, None]
value = gradient(lambda x: scale * dj.allgather(x), x)
same("that of an allgather", value, np.asarray(scale)[2 * rank : 2 * rank + 2].repeat(2, 1))
value = gradient(lambda x: scale * dj.alltoall(x), jnp.ones((2 * size, 2), jnp.float32) * rank)
wanted = np.concatenate([np.asarray(scale)[2 * rank : 2 * rank + 2]] * size).repeat(2, 1)
same("that of an alltoall", value, wanted)
value = gradient(lambda x: (rank + 1) * dj.reduce_scatter(x), jnp.ones((size, 1), jnp.float32))
same("that of a reduce_scatter", value, size * np.arange(1, size + 1, dtype=np.float32)[:, None])
value = jax.grad(jax.checkpoint(lambda x: (dj.allreduce(jnp.sin(x)) ** 2).sum()))(x)
wanted = jax.grad(lambda x: (dj.allreduce(jnp.sin(x)) ** 2).sum())(x)
holds("the gradient with jax.checkpoint", np.allclose(value, wanted, rtol=1e-6))
_, pull = jax.vjp(lambda x, n: dj.grouped_allreduce((x, n)), x, jnp.int32(1))
same("a gradient beside integers", pull((x, np.zeros((), jax.dtypes.float0)))[0], dj.allreduce(x))

# The same name again: a compiled function that is called twice at once, one that another calls twice, and loops.
again = jax.jit(lambda x: dj.allreduce(x, name="again"))
results = [again(mine * i) for i in range(20)]
holds("20 calls, one after the other", all(np.array_equal(one, sum(everyone) * i) for i, one in enumerate(results)))
inner = jax.jit(lambda x: dj.allreduce(x))
results = jax.jit(lambda x: [inner(x * i) for i in range(5)])(mine)
holds("a function that is called 5 times", all(np.array_equal(one, sum(everyone) * i) for i, one in enumerate(results)))


def step(total, x):
    return total + dj.allreduce(x, name="step"), dj.allreduce(x)


for unroll in (1, 4):
    loop = jax.jit(lambda xs: jax.lax.scan(step, jnp.zeros((), xs.dtype), xs, unroll=unroll))
    total, each = loop(jnp.arange(8.0) * (rank + 1))
    factor = size * (size + 1) / 2
    same(f"the sum of a loop, {unroll} at once", total, np.float64(28 * factor))
    same(f"the results of a loop, {unroll} at once", each, np.arange(8.0) * factor)
value = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: dj.allreduce(x, dj.MAX) + 1.0, x))(jnp.float64(rank))
same("three steps of fori_loop", value, np.float64(size + 2))
# A rank that compiles more than the others.
if rank == 0:
    again.lower(jnp.ones(7)).compile()
same("after another compilation", again(mine), np.float32(sum(everyone)))

# Process sets.
first = ddl.ProcessSet.of(list(range(max(size - 1, 1))))
if first.rank is not None:
    same("a process set", jax.jit(lambda x: dj.allreduce(x, process_set=first))(mine),
         np.float32(sum(everyone[: first.size])))
else:
    try:
        dj.allreduce(mine, process_set=first)
        holds("a set that this rank is not in is refused", False)
    except ddl.InvalidArgument as error:
        holds(f"the refusal names this rank: {error}", f"rank {rank} is not in" in str(error))
print(f"jax: rank {rank} of {size}: {f'{len(wrong)} wrong' if wrong else 'right'}", flush=True)
sys.exit(bool(wrong))
