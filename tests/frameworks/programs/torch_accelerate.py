"""Accelerate, with several processes on CPUs."""
import accelerate

import problem
import torch_model

accelerator = accelerate.Accelerator(cpu=True)
rank, size = accelerator.process_index, accelerator.num_processes
net = torch_model.model(rank)
net, optimizer = accelerator.prepare(net, torch_model.sgd(net))
inputs, targets = torch_model.share(rank, size)
for _ in range(problem.STEPS):
    optimizer.zero_grad()
    accelerator.backward(torch_model.loss(net, inputs, targets))
    optimizer.step()
is_on_cpus = accelerator.distributed_type == accelerate.DistributedType.MULTI_CPU
problem.report("accelerate", rank, size, torch_model.weights(net), MULTI_CPU=is_on_cpus)
accelerator.end_training()
problem.leave()
