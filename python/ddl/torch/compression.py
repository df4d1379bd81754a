"""How gradients are made smaller before they are sent."""
import torch

from ddl._compression import Compressor, NoneCompressor, narrow


def _narrow(dtype: torch.dtype) -> type[Compressor]:
    return narrow(dtype, lambda one: one.is_floating_point, torch.Tensor.to)


FP16Compressor = _narrow(torch.float16)


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = _narrow(torch.bfloat16)
