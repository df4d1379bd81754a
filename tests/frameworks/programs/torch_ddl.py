"""ddl.torch: gradients averaged by DistributedOptimizer; with the argument "compile" the module is compiled, with "views"
gradients are views of buckets."""
import sys

import torch

import ddl.torch as hvd
import problem
import torch_model

hvd.init()
rank, size = hvd.rank(), hvd.size()
net = torch_model.model(rank)
views = {"gradient_as_bucket_view": True} if "views" in sys.argv else {}
optimizer = hvd.DistributedOptimizer(torch_model.sgd(net), named_parameters=net.named_parameters(), **views)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
torch_model.train(torch.compile(net) if "compile" in sys.argv else net, optimizer, *torch_model.share(rank, size))
problem.report("ddl.torch", rank, size, torch_model.weights(net))
