"""How gradients are made smaller before they are sent, for tensors of any framework."""
from __future__ import annotations

from typing import Any, Callable


class Compressor:
    """compress() gives what is sent, and what decompress() needs."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        raise NotImplementedError


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        return tensor


def narrow(narrower: Any, is_float: Callable[[Any], bool], cast: Callable[[Any, Any], Any]) -> type[Compressor]:
    """Floating-point tensors as floats of this type, which has 16 bits.

    is_float: whether a type is one of floating-point numbers.
    """

    class Narrow(Compressor):
        @staticmethod
        def compress(tensor: Any) -> tuple[Any, Any]:
            if not is_float(tensor.dtype) or tensor.dtype == narrower:
                return tensor, None
            return cast(tensor, narrower), tensor.dtype

        @staticmethod
        def decompress(tensor: Any, context: Any) -> Any:
            return tensor if context is None else cast(tensor, context)

    return Narrow
