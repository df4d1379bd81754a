"""Horovod with PyTorch, initialised twice, as by a program that goes on after shutdown(), with a process set."""
import horovod.torch as hvd
import torch

import problem
import torch_model

for _ in range(2):
    first = hvd.ProcessSet([0])  # not all ranks, of which there may be two: Horovod takes no set twice
    hvd.init(process_sets=[first])
    rank, size = hvd.rank(), hvd.size()
    total = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=first).item() if first.included() else 1
    net = torch_model.model(rank)
    optimizer = hvd.DistributedOptimizer(torch_model.sgd(net), named_parameters=net.named_parameters())
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    torch_model.train(net, optimizer, *torch_model.share(rank, size))
    hvd.shutdown()
problem.report("horovod.torch", rank, size, torch_model.weights(net), several_ranks=size > 1, sum_of_set=total == 1,
               by_gloo=hvd.gloo_built() and not hvd.mpi_built())
