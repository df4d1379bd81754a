"""MXNet's kvstore dist_sync: servers add the gradients of all workers, and take the step."""
import mxnet as mx

import problem

# In the scheduler and the servers, import mxnet serves and never returns.
store = mx.kv.create("dist_sync")
rank, size = store.rank, store.num_workers
# The servers' gradients are sums.
store.set_optimizer(mx.optimizer.SGD(learning_rate=problem.RATE / size))
store.init(0, mx.nd.array(problem.start(rank)))
weights = mx.nd.empty((3, 1))
store.pull(0, out=weights)
inputs, targets = (mx.nd.array(part) for part in problem.share(rank, size))
weights.attach_grad()
for _ in range(problem.STEPS):
    with mx.autograd.record():
        loss = mx.nd.mean(mx.nd.square(mx.nd.dot(inputs, weights) - targets))
    loss.backward()
    store.push(0, weights.grad)
    store.pull(0, out=weights)
problem.report("mxnet", rank, size, weights.asnumpy(), several_workers=size > 1)
