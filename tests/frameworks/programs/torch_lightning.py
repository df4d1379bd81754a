"""Lightning's Trainer with its strategy ddp."""
import os
import warnings

import lightning
from torch.utils.data import DataLoader, TensorDataset

import problem
import torch_model

# Of data that are read by the process itself.
warnings.filterwarnings("ignore", ".*does not have many workers.*")


class Module(lightning.LightningModule):
    def __init__(self, rank):
        super().__init__()
        self.net = torch_model.model(rank)

    def training_step(self, batch, _):
        return torch_model.loss(self.net, *batch)

    def configure_optimizers(self):
        return torch_model.sgd(self.net)


trainer = lightning.Trainer(
    accelerator="cpu", strategy="ddp", devices=int(os.environ["LOCAL_WORLD_SIZE"]),
    num_nodes=int(os.environ["GROUP_WORLD_SIZE"]), max_epochs=problem.STEPS, use_distributed_sampler=False,
    logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
rank, size = trainer.global_rank, trainer.world_size
module = Module(rank)
# One batch is an epoch.
trainer.fit(module, DataLoader(TensorDataset(*torch_model.share(rank, size)), batch_size=problem.ROWS))
problem.report("lightning", rank, size, torch_model.weights(module.net), several_ranks=size > 1)
problem.leave()
