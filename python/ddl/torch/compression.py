"""How gradients are made smaller before they are sent."""
from __future__ import annotations

from typing import Any

import torch


class Compressor:
    """compress() gives what is sent, and what decompress() needs."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        raise NotImplementedError


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
        return tensor


def _as_type(dtype: torch.dtype) -> type[Compressor]:
    class Narrow(Compressor):
        """Floating-point tensors as floats of 16 bits."""

        @staticmethod
        def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
            if not tensor.dtype.is_floating_point or tensor.dtype == dtype:
                return tensor, None
            return tensor.to(dtype), tensor.dtype

        @staticmethod
        def decompress(tensor: torch.Tensor, context: Any) -> torch.Tensor:
            return tensor if context is None else tensor.to(context)

    return Narrow


FP16Compressor = _as_type(torch.float16)


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = _as_type(torch.bfloat16)
