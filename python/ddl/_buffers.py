"""Arrays as libddl sees them: an address, a number of elements, and their type. Nothing is copied."""
from __future__ import annotations

import importlib
import math
import struct
from typing import Any, NamedTuple, Sequence

from ddl._library import NULL, ffi, lib
from ddl.errors import InvalidArgument

DTYPES = {
    "int8": lib.DDL_INT8,
    "int16": lib.DDL_INT16,
    "int32": lib.DDL_INT32,
    "int64": lib.DDL_INT64,
    "uint8": lib.DDL_UINT8,
    "uint16": lib.DDL_UINT16,
    "uint32": lib.DDL_UINT32,
    "uint64": lib.DDL_UINT64,
    "float8_e4m3fn": lib.DDL_FLOAT8_E4M3FN,
    "float8_e5m2": lib.DDL_FLOAT8_E5M2,
    "float8_e4m3fnuz": lib.DDL_FLOAT8_E4M3FNUZ,
    "float8_e5m2fnuz": lib.DDL_FLOAT8_E5M2FNUZ,
    "float16": lib.DDL_FLOAT16,
    "bfloat16": lib.DDL_BFLOAT16,
    "float32": lib.DDL_FLOAT32,
    "float64": lib.DDL_FLOAT64,
    "bool": lib.DDL_BOOL,
}
_FLOATS = {2: "float16", 4: "float32", 8: "float64"}


def _name_of(kind: str, size: int) -> str | None:
    """Of a kind of number and its size in bytes: "i", "u", "f" or "b"."""
    if kind == "b" and size == 1:
        return "bool"
    if kind == "f":
        return _FLOATS.get(size)
    if kind in "iu" and size in (1, 2, 4, 8):
        return ("u" if kind == "u" else "") + f"int{8 * size}"
    return None


def _name_of_format(text: str, size: int) -> str | None:
    """Of a format of the module struct: "d", "<f", "?"."""
    code = text.lstrip("@=<")
    if code == "?":
        return "bool"
    if code in ("e", "f", "d"):
        return _FLOATS[size]
    if code in ("b", "h", "i", "l", "q", "n"):
        return _name_of("i", size)
    return _name_of("u", size) if code in ("B", "H", "I", "L", "Q", "N", "c") else None


class Buffer(NamedTuple):
    """Elements of an array. ``owner`` keeps them alive."""

    address: Any
    count: int
    dtype: int
    owner: Any = None
    stream: Any = NULL
    on_gpu: bool = False


NOTHING = Buffer(NULL, 0, lib.DDL_UINT8)


def _typed(address: Any, size_in_bytes: int, name: str | None, what: str, given: str | None, **more: Any) -> Buffer:
    name = given or name
    if name not in DTYPES:
        raise InvalidArgument(f"{what} is of a type that libddl does not have; its types are {', '.join(DTYPES)}")
    dtype = DTYPES[name]
    size = int(lib.ddl_dtype_size(dtype))
    if size_in_bytes % size:
        raise InvalidArgument(f"{what} has {size_in_bytes} bytes, which is no multiple of {name}'s {size}")
    return Buffer(address, size_in_bytes // size, dtype, **more)


def _on_gpu(array: Any, what: str, dtype: str | None) -> Buffer:
    """By the interface that CuPy, Numba and PyTorch have for arrays on GPUs."""
    interface = array.__cuda_array_interface__
    shape, typestr = interface["shape"], interface["typestr"]
    size = int(typestr[2:])
    count = math.prod(shape)
    strides = interface.get("strides")
    if strides is not None and count:
        expected = size
        for length, stride in zip(reversed(shape), reversed(strides)):
            if length != 1 and stride != expected:
                raise InvalidArgument(f"{what} is not contiguous")
            expected *= length
    return _typed(
        ffi.cast("void *", interface["data"][0]),
        count * size,
        _name_of(typestr[1], size),
        what,
        dtype,
        owner=array,
        stream=ffi.cast("void *", interface.get("stream") or 0),
        on_gpu=True,
    )


def buffer_of(array: Any, what: str, *, writable: bool = False, dtype: str | None = None) -> Buffer:
    """The elements of an array: of anything with the buffer protocol, or with ``__cuda_array_interface__``.

    dtype: the name of the elements' type, where the array cannot say it, such as ``"bfloat16"`` in 16-bit integers.
    """
    if hasattr(array, "__cuda_array_interface__"):
        return _on_gpu(array, what, dtype)
    # Types of ml_dtypes, which the buffer protocol does not have.
    name = getattr(getattr(array, "dtype", None), "name", None)
    if name in DTYPES and hasattr(array, "__array_interface__"):
        interface = array.__array_interface__
        if interface.get("strides") is not None:
            raise InvalidArgument(f"{what} is not contiguous")
        address, is_read_only = interface["data"]
        if writable and is_read_only:
            raise InvalidArgument(f"{what} may not be written")
        return _typed(ffi.cast("void *", address), array.nbytes, name, what, dtype, owner=array)
    try:
        view = memoryview(array)
    except TypeError:
        raise InvalidArgument(
            f"{what} is of {type(array).__name__}, which is no array: neither a buffer nor on a GPU"
        ) from None
    if not view.c_contiguous:
        raise InvalidArgument(f"{what} is not contiguous")
    if writable and view.readonly:
        raise InvalidArgument(f"{what} may not be written")
    memory = ffi.from_buffer(view, require_writable=writable)
    return _typed(memory, view.nbytes, _name_of_format(view.format, view.itemsize), what, dtype, owner=(array, memory))


def number_of(value: Any) -> tuple[Any, str] | None:
    """A number in memory of its own, and the format of the module struct; None: it is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    code = "d" if isinstance(value, float) else "q"
    try:
        return bytearray(struct.pack(code, value)), code
    except struct.error:
        raise InvalidArgument(f"{value} does not fit into 64 bits") from None


def same_type(a: Buffer, b: Buffer) -> None:
    if a.dtype != b.dtype:
        raise InvalidArgument("out: the two arrays are of different types")


def place_for(out: Any, count: int, send: Buffer, dtype: str | None) -> Buffer:
    """Where results go: out, if it has so many elements of the type of what is sent."""
    recv = buffer_of(out, "out", writable=True, dtype=dtype)
    same_type(send, recv)
    if recv.count != count:
        raise InvalidArgument(f"out has {recv.count} elements instead of {count}")
    return recv


def new_like(array: Any, shape: Sequence[int] | None = None) -> Any:
    """A new array for results: of NumPy's arrays, or of whatever the array's own library makes."""
    module = type(array).__module__.split(".")[0]
    if module not in ("numpy", "cupy"):
        raise InvalidArgument(f"give the result's place with out=: there is no new {type(array).__name__}")
    return importlib.import_module(module).empty(array.shape if shape is None else tuple(shape), array.dtype)


def stream_of(buffer: Buffer, stream: Any) -> Any:
    return buffer.stream if stream is None else ffi.cast("void *", stream)
