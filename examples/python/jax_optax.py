"""Training with JAX and optax on many ranks: each computes the gradients of its own part of the data.

    ddlrun -np 2 python jax_optax.py
"""
import ddl.jax
import jax
import jax.numpy as jnp
import optax

ddl.jax.init()
rank, size = ddl.jax.rank(), ddl.jax.size()

keys = jax.random.split(jax.random.key(1), 3)
inputs = jax.random.normal(keys[0], (240, 8))
targets = jnp.sin(inputs).sum(axis=1, keepdims=True)
inputs, targets = inputs[rank::size], targets[rank::size]  # this rank's part
params = {"hidden": jax.random.normal(keys[1], (8, 32)) / 3, "output": jax.random.normal(keys[2], (32, 1)) / 6}
params = ddl.jax.broadcast(params)  # all ranks begin with those of rank 0
optimizer = optax.adam(1e-2)
state = optimizer.init(params)


def loss_of(params):
    predictions = jnp.tanh(inputs @ params["hidden"]) @ params["output"]
    return jnp.mean((predictions - targets) ** 2)


@jax.jit
def step(params, state):
    result = jax.value_and_grad(loss_of)(params)
    loss, gradients = ddl.jax.average_gradients(result)  # over the ranks: as of the whole batch
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


for i in range(200):
    params, state, loss = step(params, state)
if rank == 0:
    print(f"{size} ranks: loss {loss:.4f}")
