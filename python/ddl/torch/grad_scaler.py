"""A gradient scaler whose ranks agree on whether a step is skipped."""
from __future__ import annotations

from typing import Any

import torch

from ddl.torch.sharded_optimizer import _ShardedOptimizer

# PyTorch 2.3 has one for every device.
_GradScaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler


class ShardedGradScaler(_GradScaler):
    """torch.amp.GradScaler for a ShardedOptimizer, of whose combined gradients each rank sees its own slices alone.

    With other optimizers it is what it derives from.
    """

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> Any:
        if not isinstance(optimizer, _ShardedOptimizer):
            return super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)
        optimizer.synchronize()
        found = optimizer._ddl.unscale(inv_scale.to("cpu"))
        return {found_inf.device: one.to(found_inf.device) for one in found.values()}

    def step(self, optimizer: Any, *arguments: Any, **named: Any) -> Any:
        if not isinstance(optimizer, _ShardedOptimizer):
            return super().step(optimizer, *arguments, **named)
        optimizer._by_scaler = True
        try:
            return super().step(optimizer, *arguments, **named)
        finally:
            optimizer._by_scaler = False
