"""Batch normalisation by the means of all ranks' batches."""
from __future__ import annotations

import itertools
from typing import Any

import torch

import ddl
from ddl._horovod import Sum
from ddl.torch._allreduce import allreduce

_numbers = itertools.count(1)


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Like BatchNorm, but mean and variance are those of the samples of all ranks. In evaluation it is BatchNorm.

    All ranks have to be in training at the same time. The ranks' batches may have different numbers of samples.
    """

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        # Ranks make their modules in the same order.
        self._name = f"batch_norm.{next(_numbers)}"

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        uses_batch = self.training or self.running_mean is None
        if not uses_batch or not ddl.is_initialized() or ddl.size() == 1:
            return torch.nn.functional.batch_norm(
                input,
                self.running_mean,
                self.running_var,
                self.weight,
                self.bias,
                uses_batch,
                self._momentum(),
                self.eps,
            )
        along = [dimension for dimension in range(input.dim()) if dimension != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        # Sums and counts of many samples have no place in 16 bits.
        wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        count = torch.tensor([input.numel() / input.shape[1]], dtype=wide.dtype, device=input.device)
        sums = allreduce(torch.cat([wide.sum(along), count]), name=self._name + ".sum", op=Sum)
        total = sums[-1].detach()
        mean = sums[:-1] / total
        deviation = wide - mean.view(shape)
        squares = allreduce(deviation.pow(2).sum(along), name=self._name + ".squares", op=Sum)
        variance = squares / total
        if self.training and self.track_running_stats:
            with torch.no_grad():
                momentum = self._momentum()
                self.running_mean += momentum * (mean - self.running_mean)
                self.running_var += momentum * (squares / (total - 1).clamp(min=1) - self.running_var)
        output = deviation * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            output = output * self.weight.view(shape) + self.bias.view(shape)
        return output.to(input.dtype)

    def _momentum(self) -> float:
        """How much of the running means the new ones replace."""
        if not self.training or not self.track_running_stats:
            return 0.0 if self.momentum is None else self.momentum
        self.num_batches_tracked += 1
        return 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
