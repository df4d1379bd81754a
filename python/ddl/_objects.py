"""Objects of Python between ranks, by pickle."""
from __future__ import annotations

import pickle
from typing import Any

from ddl._context import ProcessSet, allgather, broadcast, call_ordered, members_of, world
from ddl._library import ffi, lib


def pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        # Functions and classes of __main__ or a notebook.
        try:
            import cloudpickle
        except ImportError:
            raise TypeError(
                f"a {type(value).__name__} cannot be pickled; cloudpickle, which is not installed, may be able to"
            ) from None
        return cloudpickle.dumps(value)


def numbers(count: int) -> memoryview:
    return memoryview(bytearray(8 * count)).cast("q")


def broadcast_object(value: Any, root: int = 0, *, process_set: ProcessSet = world) -> Any:
    """Root's object, on every rank. The others' value is not used."""
    is_root = process_set.rank == root
    data = bytearray(pickled(value)) if is_root else bytearray()
    size = numbers(1)
    size[0] = len(data)
    broadcast(size, root, process_set=process_set)
    if not is_root:
        data = bytearray(size[0])
    broadcast(data, root, process_set=process_set)
    return value if is_root else pickle.loads(data)


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
