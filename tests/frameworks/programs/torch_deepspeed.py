"""DeepSpeed with ZeRO-1: each rank has the optimizer's state of some of the weights."""
import deepspeed

import problem
import torch_model

deepspeed.init_distributed("gloo")
rank, size = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
net = torch_model.model(rank)
config = {
    "train_micro_batch_size_per_gpu": problem.ROWS // size,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
    "gradient_clipping": 0.0,  # not by the default norm of 1
}
engine, _, _, _ = deepspeed.initialize(model=net, optimizer=torch_model.sgd(net), config=config)
inputs, targets = torch_model.share(rank, size)
for _ in range(problem.STEPS):
    engine.backward(torch_model.loss(engine, inputs, targets))
    engine.step()
problem.report("deepspeed", rank, size, torch_model.weights(net), ZeRO_1=engine.zero_optimization_stage() == 1)
deepspeed.comm.destroy_process_group()
problem.leave()  # DeepSpeed keeps the groups.
