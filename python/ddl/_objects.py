"""Objects of Python between ranks, by pickle."""
from __future__ import annotations

import pickle
from typing import Any, Callable

from ddl._buffers import buffer_of
from ddl._context import ProcessSet, allgather, broadcast, call_ordered, members_of, world
from ddl._library import ffi, lib

_LARGE = 1 << 16  # bytes of an array that is sent as it lies in memory


def pickled(value: Any, is_inside: Callable[[pickle.PickleBuffer], bool] | None = None) -> bytes:
    """is_inside: of the memory of each array, whether it belongs into the result; None: all of them."""
    options: dict[str, Any] = {"protocol": 5, "buffer_callback": is_inside}
    try:
        return pickle.dumps(value, **options)
    except (pickle.PicklingError, AttributeError, TypeError):
        # Functions and classes of __main__ or a notebook.
        try:
            import cloudpickle
        except ImportError:
            raise TypeError(
                f"a {type(value).__name__} cannot be pickled; cloudpickle, which is not installed, may be able to"
            ) from None
        return cloudpickle.dumps(value, **options)


def numbers(count: int) -> memoryview:
    return memoryview(bytearray(8 * count)).cast("q")


def broadcast_object(value: Any, root: int = 0, *, process_set: ProcessSet = world) -> Any:
    """Root's object, on every rank. The others' value is not used. Large arrays of NumPy are not copied on the way."""
    is_root = process_set.rank == root
    arrays: list[Any] = []

    def is_inside(array: pickle.PickleBuffer) -> bool:
        memory = array.raw()
        if memory.nbytes < _LARGE:
            return True
        arrays.append(memory)
        return False

    data = bytearray(pickled(value, is_inside)) if is_root else bytearray()
    lengths = numbers(2)
    lengths[0], lengths[1] = len(data), len(arrays)
    broadcast(lengths, root, process_set=process_set)
    sizes = numbers(lengths[1])
    for i, one in enumerate(arrays):
        sizes[i] = one.nbytes
    if not is_root:
        data = bytearray(lengths[0])
    broadcast(data, root, process_set=process_set)
    if len(sizes) > 0:
        broadcast(sizes, root, process_set=process_set)
    if not is_root:
        arrays = [bytearray(size) for size in sizes]
    for one in arrays:
        memory = buffer_of(one, "the array", writable=not is_root)
        call_ordered(lib.ddl_broadcast, (memory.address, memory.count, memory.dtype, root), process_set)
    return value if is_root else pickle.loads(data, buffers=arrays)


def allgather_object(value: Any, *, process_set: ProcessSet = world) -> list[Any]:
    """Every rank's object, by rank, on every rank."""
    data = pickled(value)
    own, sizes = numbers(1), numbers(members_of(process_set))
    own[0] = len(data)
    allgather(own, out=sizes, process_set=process_set)
    everything = bytearray(sum(sizes))
    counts = ffi.new("uint64_t[]", list(sizes))
    call_ordered(
        lib.ddl_allgatherv, (ffi.from_buffer(data), ffi.from_buffer(everything), counts, lib.DDL_UINT8), process_set
    )
    objects, begin = [], 0
    for length in sizes:
        objects.append(pickle.loads(memoryview(everything)[begin : begin + length]))
        begin += length
    return objects
