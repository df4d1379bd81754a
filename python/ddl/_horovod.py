"""Horovod's names that need no framework: joining, process sets, operations, what was submitted, and objects."""
from __future__ import annotations

import array
import ctypes
import io
import itertools
import pickle
import threading
import warnings
from typing import Any, Callable, Sequence

import ddl
from ddl._context import _at_end, call_when_joined, context, is_elastic
from ddl._library import ffi, lib
from ddl._objects import numbers, pickled
from ddl._tensors import allgather_into, allreduce_async, broadcast_async, numbered
from ddl.errors import check

# Process sets.


class ProcessSet:
    """Ranks of the job, by their numbers. It can be used after add_process_set()."""

    def __init__(self, ranks_or_comm: Any):
        ranks = ranks_or_comm
        if hasattr(ranks, "Get_group"):  # a communicator of mpi4py
            from mpi4py import MPI

            group, everyone = ranks.Get_group(), MPI.COMM_WORLD.Get_group()
            ranks = MPI.Group.Translate_ranks(group, range(group.size), everyone)
        self.ranks = None if ranks is None else sorted(int(rank) for rank in ranks)
        self.process_set_id: int | None = None  # the same on all ranks; 0 is the job. None: it is not registered
        self._set: ddl.ProcessSet | None = None
        self._rank: int | None = None

    def _register(self, one: ddl.ProcessSet | None, number: int | None) -> None:
        """one: libddl's set, or None as long as there is none."""
        self._set, self.process_set_id = one, number
        self._rank = None if one is None else one.rank

    def included(self) -> bool | None:
        """Whether this rank is in it; None: it is not registered."""
        return None if self._set is None else self._rank is not None

    def size(self) -> int | None:
        return None if self._set is None else len(self.ranks)

    def rank(self) -> int | None:
        """This rank's number in it; None: it is not in it."""
        return self._rank

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet(None)
_is_homogeneous = True
_begins_when_joined = False
_sets_of_init: Any = None  # what init() was given
_added: list[ProcessSet] = []
_ids = itertools.count(1)


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Registers a set. Collective over the job, with the same ranks everywhere."""
    one = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if one._set is not None or any(one.ranks == other.ranks for other in (*_added, global_process_set)):
        raise ValueError(f"a process set of the ranks {one.ranks} has been added already")
    one._register(ddl.ProcessSet.of(one.ranks), next(_ids))
    _added.append(one)
    return one


def remove_process_set(process_set: ProcessSet) -> bool:
    """Leaves a set, which may be added again. False: it is not registered, or the global one."""
    if process_set not in _added:
        return False
    if process_set.included():
        process_set._set.free()
    process_set._register(None, None)
    _added.remove(process_set)
    return True


def set_of(process_set: ProcessSet) -> ddl.ProcessSet:
    if process_set._set is None:
        context()  # says that init() is missing, if it is
        raise ValueError(f"{process_set} has not been added; call add_process_set() first")
    if process_set._rank is None:
        raise ValueError(f"rank {ddl.rank()} is not in {process_set}")
    return process_set._set


def has_others(process_set: ProcessSet) -> bool:
    """Whether this rank is in the set with others. In an elastic job there may be others in the next generation, and
    functions that a framework has compiled keep the answer: there it is true whenever this rank is in the set."""
    return bool(process_set.included()) and (process_set.size() > 1 or is_elastic())


def with_id(process_set_id: int) -> ProcessSet | None:
    """The registered set that has this number."""
    return next((one for one in (global_process_set, *_added) if one.process_set_id == process_set_id), None)


def root_in(process_set: ProcessSet, root_rank: int) -> int:
    """Of a rank of the job, its number in the set."""
    set_of(process_set)
    if root_rank not in process_set.ranks:
        raise ValueError(f"root_rank {root_rank} is not in {process_set}")
    return process_set.ranks.index(root_rank)


# Joining and leaving, and what libddl has.


def _begin(_context: Any) -> None:
    """After each joining. Collective."""
    global _is_homogeneous
    sizes = array.array("i", [ddl.local_size(), -ddl.local_size()])  # to become the largest, and less the smallest
    ddl.allreduce(sizes, ddl.MAX, out=sizes)
    _is_homogeneous = sum(sizes) == 0
    global_process_set.ranks = list(range(ddl.size()))
    global_process_set._register(ddl.world, 0)
    if _sets_of_init != "dynamic":
        for one in _sets_of_init or ():
            add_process_set(one)


def _end() -> None:
    """Before ddl.shutdown(), which frees the sets."""
    global _ids
    for one in (*_added, global_process_set):
        one._register(None, None)
    _added.clear()
    _ids = itertools.count(1)  # as a process that is new has them


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the job. comm: a list of ranks, or a communicator of mpi4py, of which only all ranks are possible.
    process_sets: sets that are added at once, and in each generation of an elastic job."""
    global _begins_when_joined, _sets_of_init
    if ddl.is_initialized() and global_process_set._set is not None:
        return
    _sets_of_init = process_sets
    if not _begins_when_joined:
        _begins_when_joined = True
        call_when_joined(_begin, _end)
    ddl.init()
    if comm is not None and ProcessSet(comm).ranks not in ([], global_process_set.ranks):
        raise ValueError("init() takes all ranks of the job; make a process set of some of them")


def shutdown() -> None:
    """Leaves the job. Called at the end of the program, too."""
    ddl.shutdown()


def is_homogeneous() -> bool:
    """Whether every host has as many ranks as each other."""
    if global_process_set._set is None:
        raise ddl.InvalidArgument("call init() first: is_homogeneous() says what the ranks have told each other there")
    return _is_homogeneous


def join(device: int = -1) -> int:
    """No more data from this rank; returns the rank that joined last."""
    return ddl.join()


# Set by the package horovod, for scripts that rely on it: gathers, exchanges, scatters and broadcasts of tensors fail
# while a rank has joined, and broadcast_optimizer_state() leaves gradients of zeros with an optimizer without state. Of
# the process: the package has ddl's own functions, so the names of ddl act so, too.
acts_as_horovod = False


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """All ranks record a timeline, which rank 0 writes. Collective, unlike Horovod's."""
    check(lib.ddl_timeline_start(context(), file_path.encode(), 0))


def stop_timeline() -> None:
    check(lib.ddl_timeline_stop(context()))


def mpi_built() -> bool:
    return ddl.has_feature("mpi")


def mpi_enabled() -> bool:
    return ddl.has_feature("mpi-enabled")


def mpi_threads_supported() -> bool:
    return ddl.has_feature("mpi-threads")


def nccl_built() -> int:
    """The version of NCCL or RCCL, such as 21805 of 2.18.5; 0: neither can be loaded."""
    version = ctypes.c_int(0)
    for file in ("libnccl.so.2", "librccl.so.1") if ddl.has_feature("nccl") else ():
        try:
            ctypes.CDLL(file).ncclGetVersion(ctypes.byref(version))
        except OSError:
            continue
        break
    return version.value


def cuda_built() -> bool:
    return ddl.has_feature("cuda")


def rocm_built() -> bool:
    return ddl.has_feature("rocm")


def gloo_built() -> bool:
    """libddl connects ranks itself, as Horovod's Gloo does."""
    return True


def gloo_enabled() -> bool:
    return not mpi_enabled()


def ddl_built() -> bool:
    """Whether IBM's DDL was there, which Horovod means by this name."""
    return False


def ccl_built() -> bool:
    return False


# Operations.


class _Op:
    """An operation, by Horovod's name."""

    def __init__(self, name: str, number: int):
        self.name, self.number = name, number

    def __repr__(self) -> str:
        return self.name


Average = _Op("Average", ddl.AVERAGE)
Sum = _Op("Sum", ddl.SUM)
Min = _Op("Min", ddl.MIN)
Max = _Op("Max", ddl.MAX)
Product = _Op("Product", ddl.PRODUCT)
Adasum = _Op("Adasum", ddl.ADASUM)


def op_of(average: bool | None, op: _Op | None) -> _Op:
    if average is not None:
        if op is not None:
            raise ValueError("average is an old name for op; give op alone")
        warnings.warn("average is an old name for op", DeprecationWarning, stacklevel=3)
        return Average if average else Sum
    return Average if op is None else op


# Open tensors, by the numbers that the program has.

_numbers = itertools.count(1)
_open: dict[int, tuple[Any, Callable[[], Any], Any, list[tuple[bytes, ProcessSet]]]] = {}
# The names of tensors that the program has not seen to be complete, and their process sets. libddl takes a name again
# as soon as its tensor is complete; an error that depends on the time is of no use to a program.
_names: set[tuple[bytes, ProcessSet]] = set()
_at_end.append(_names.clear)
_lock = threading.Lock()


def opened(handle: Any, result: Callable[[], Any], keeps: Any, name: bytes, process_set: ProcessSet) -> int:
    with _lock:
        number = next(_numbers)
        names = [(name, process_set)]
        _open[number] = (handle, result, keeps, names)
        _names.update(names)
    return number


def _see_complete(names: list[tuple[bytes, ProcessSet]]) -> None:
    with _lock:
        _names.difference_update(names)


def poll(handle: int) -> bool:
    """Whether synchronize() would return at once."""
    with _lock:
        one = _open.get(handle)
    if one is None:
        return True
    handles = one[0] if isinstance(one[0], list) else [one[0]]
    done = ffi.new("int32_t *")
    for each in handles:
        check(lib.ddl_test(each, done))
        if done[0] != 1:
            return False
    _see_complete(one[3])
    return True


def synchronize(handle: int) -> Any:
    """Waits for a tensor, and returns its result; None: the number is unknown, or has been used."""
    with _lock:
        one = _open.pop(handle, None)
    if one is None:
        return None
    handles, result, keeps, names = one
    _see_complete(names)
    if isinstance(handles, list):
        status = lib.ddl_wait_all(ffi.new("ddl_handle *[]", handles), len(handles))
    else:
        status = lib.ddl_wait(handles)
    del keeps
    check(status)
    return result()


def named(call: str, name: str | None, process_set: ProcessSet) -> bytes:
    """The tensor's name, or a number that all ranks of the set give if they make the same calls in the same order."""
    if name is None:
        return f"{call}.noname.{numbered(call, set_of(process_set))}".encode()
    whole = f"{call}.{name}".encode()
    if (whole, process_set) in _names:
        raise ValueError(f'a tensor "{name}" has been submitted before; call synchronize() for it first')
    return whole


def drop_open() -> None:
    """Forgets all open tensors. For a process that has left the job, by which they are complete or have failed."""
    with _lock:
        dropped = list(_open.values())
        _open.clear()
        _names.clear()
    for handles, *_ in dropped:
        for handle in handles if isinstance(handles, list) else [handles]:
            lib.ddl_wait(handle)


def together(numbers: Sequence[int]) -> int:
    """One number for several open tensors, whose results are a list."""
    with _lock:
        parts = [_open.pop(number) for number in numbers]
        number = next(_numbers)
        names = [name for part in parts for name in part[3]]
        _open[number] = ([part[0] for part in parts], lambda: [part[1]() for part in parts], parts, names)
    return number


# Objects, and where ranks wait for each other. All are named tensors, which go on while a rank has joined.


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None, process_set=global_process_set) -> Any:
    """Root's object, on every rank that has not joined."""
    is_root = ddl.rank() == root_rank
    call = named("object", name, process_set).decode()
    data = bytearray(pickled(obj)) if is_root else bytearray()
    size = numbers(1)
    size[0] = len(data)
    options = dict(root=root_in(process_set, root_rank), process_set=set_of(process_set), zeros_if_joined=True)
    broadcast_async(size, f"broadcast.{call}.size", **options).wait()
    if not is_root:
        data = bytearray(size[0])
    broadcast_async(memoryview(data), f"broadcast.{call}.data", **options).wait()
    return obj if is_root else pickle.loads(data)


def allgather_object(obj: Any, name: str | None = None, process_set=global_process_set) -> list[Any]:
    """Every rank's object, by rank; None for a rank that has joined."""
    call = named("object", name, process_set).decode()
    own = pickled((process_set.rank(), obj))
    options = dict(process_set=set_of(process_set), zeros_if_joined=True)
    data = allgather_into(bytearray, own, f"allgather.{call}", **options).wait()
    stream, objects = io.BytesIO(data), [None] * process_set.size()
    while stream.tell() < len(data):
        rank, one = pickle.load(stream)
        objects[rank] = one
    return objects


def raise_on_all(problem: Exception | None, process_set: ProcessSet) -> None:
    """Raises on every rank the first one that a rank has, so that no other waits for that rank. Collective."""
    for one in allgather_object(problem, process_set=process_set):
        if one is not None:
            raise one


def barrier(process_set=global_process_set) -> None:
    """Returns when every rank that has not joined has called it."""
    chosen, zero = set_of(process_set), memoryview(bytearray(4)).cast("f")
    name = f"allreduce.barrier.{numbered('barrier', chosen)}"
    allreduce_async(zero, name, out=zero, process_set=chosen, zeros_if_joined=True).wait()
