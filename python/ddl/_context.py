"""The context of this process, process sets, and the ordered collectives.

All ranks of a process set make the same calls in the same order. While a call waits, other threads of Python run.
"""
from __future__ import annotations

import atexit
import os
import struct
import threading
import time
from typing import Any, Callable, Sequence

from ddl._buffers import NOTHING, buffer_of, new_like, number_of, place_for, same_type, stream_of
from ddl._library import NULL, ffi, lib
from ddl._store import Store, make_set
from ddl.errors import Aborted, Error, InvalidArgument, check, is_loss

SUM = lib.DDL_SUM
AVERAGE = lib.DDL_AVERAGE
MIN = lib.DDL_MIN
MAX = lib.DDL_MAX
PRODUCT = lib.DDL_PRODUCT
BIT_AND = lib.DDL_BIT_AND
BIT_OR = lib.DDL_BIT_OR
BIT_XOR = lib.DDL_BIT_XOR
LOGICAL_AND = lib.DDL_LOGICAL_AND
LOGICAL_OR = lib.DDL_LOGICAL_OR
LOGICAL_XOR = lib.DDL_LOGICAL_XOR
ADASUM = lib.DDL_ADASUM

# Why a process joins.
FIRST, CHANGED, LOST = lib.DDL_ELASTIC_FIRST, lib.DDL_ELASTIC_CHANGED, lib.DDL_ELASTIC_LOST

_LEAVING_SECONDS = 5.0  # for calls of other threads, which fail with those of this one

_WORLD = 0
_NO_SET = 2**64 - 1

_lock = threading.Lock()
_context: Any = None
_process = 0  # that has it: a forked child does not
_timeout_seconds = 0.0  # of every context
_at_begin: list[Callable[[Any], None]] = []
_at_end: list[Callable[[], None]] = []


def init(timeout_seconds: float = 0.0) -> None:
    """Joins the job that this process was started in; without a launcher, a job of one rank.

    Collective: returns when all ranks have called it. Does nothing if it has been called before.
    timeout_seconds: of every collective that names none; 0: DDL_TIMEOUT_SECONDS, or no limit.
    """
    global _timeout_seconds
    if _is_joined():
        return
    _timeout_seconds = timeout_seconds
    reason, goes_on = FIRST, False
    while True:
        try:
            return join(reason)
        except Error as error:
            goes_on = goes_on or is_elastic()
            if not goes_on or not is_survived(error):
                raise
        leave()
        reason = LOST


def _is_joined() -> bool:
    return _context is not None and _process == os.getpid()


def join(reason: int, commits: int = 0) -> None:
    """Joins the job for the first time, or joins its next generation, and begins what call_when_joined() was told.

    Collective. Does nothing in a process that has joined. commits: how many the process has made or taken over.
    """
    global _context, _process
    with _lock:
        if _is_joined():
            return
        context = ffi.new("ddl_context **")
        if reason == FIRST:
            options = ffi.new("ddl_init_options *", [ffi.sizeof("ddl_init_options"), 0, _timeout_seconds])
            check(lib.ddl_init(options, context))
        else:
            values = [ffi.sizeof("ddl_elastic_join_options"), 0, _timeout_seconds, commits, reason]
            check(lib.ddl_elastic_join(ffi.new("ddl_elastic_join_options *", values), context))
        _context = context[0]
        _process = os.getpid()
    for action in list(_at_begin):
        action(_context)


def leave() -> None:
    """shutdown() before the next generation: that a rank was lost is known."""
    deadline = time.monotonic() + _LEAVING_SECONDS
    while True:
        try:
            return shutdown()
        except Error as error:
            if error.status == "busy" and time.monotonic() < deadline:
                time.sleep(0.001)
            elif is_loss(error):
                return
            else:
                raise


def generation() -> int:
    """The generation of the job, from 0; -1: ranks of this job do not go on when one is lost."""
    return int(lib.ddl_elastic_generation(context()))


def is_elastic() -> bool:
    """Whether this process has joined a job whose ranks go on when one is lost."""
    return _context is not None and generation() >= 0


def is_survived(error: Error) -> bool:
    """Whether an elastic job goes on after this error. That joining was aborted is the end of the job."""
    return is_loss(error) and not (isinstance(error, Aborted) and _context is None)


def shutdown() -> None:
    """Leaves the job. Called at the end of the program, too. init() may be called again."""
    global _context
    for action in list(_at_end):
        action()
    with _lock:
        if _context is None:
            return
        status = lib.ddl_finalize(_context)
        if status != lib.DDL_ERROR_BUSY:
            _context = None
        check(status)


def call_when_joined(begin: Callable[[Any], None], end: Callable[[], None]) -> None:
    """From now on begin gets each C context that this process has, and end is called before it is left."""
    _at_begin.append(begin)
    _at_end.append(end)
    if _context is not None:
        begin(_context)


def _shutdown_at_exit() -> None:
    try:
        shutdown()
    except Error:
        pass  # the call that has failed has raised it


atexit.register(_shutdown_at_exit)


def is_initialized() -> bool:
    return _context is not None


def context() -> Any:
    """The C context, for the other modules."""
    if _context is None:
        raise InvalidArgument("libddl has not been initialised; call ddl.init() first")
    return _context


def rank() -> int:
    """This rank's number in the job, from 0."""
    return int(lib.ddl_rank(context()))


def size() -> int:
    """The number of ranks of the job."""
    return int(lib.ddl_size(context()))


def local_rank() -> int:
    """This rank's number among those of its host."""
    return int(lib.ddl_local_rank(context()))


def local_size() -> int:
    """The number of ranks of this host."""
    return int(lib.ddl_local_size(context()))


def cross_rank() -> int:
    """The index of this host among those that have this local rank."""
    return int(lib.ddl_cross_rank(context()))


def cross_size() -> int:
    """The number of hosts that have this local rank."""
    return int(lib.ddl_cross_size(context()))


def has_feature(name: str) -> bool:
    """Whether libddl has ``"mpi"``, ``"nccl"``, ``"cuda"``, ``"rocm"``, ..., here."""
    return lib.ddl_has_feature(name.encode()) == 1


def version() -> str:
    """libddl's version."""
    return ffi.string(lib.ddl_version()).decode()


def backend_name() -> str:
    """What runs the collectives: ``"ddl"`` or ``"mpi"``."""
    return ffi.string(lib.ddl_backend_name(context())).decode()


def abort(code: int, text: str = "") -> None:
    """Ends the whole job with this exit code; the text is in every rank's error. Does not return."""
    check(lib.ddl_abort(context(), code, text.encode()))


class ProcessSet:
    """Some ranks of the job, with collectives of their own. ``world`` is the set of all.

    On a rank that is not in it, ``rank`` is None and calls raise InvalidArgument.
    """

    def __init__(self, number: int):
        self._number = number

    @staticmethod
    def of(ranks: Sequence[int]) -> ProcessSet:
        """Makes a set of these ranks of the job, in this order. Collective over the job, with the same list."""
        made = ffi.new("uint64_t *")
        check(lib.ddl_process_set_create(context(), ffi.new("int32_t[]", list(ranks)), len(ranks), made))
        return ProcessSet(int(made[0]))

    @staticmethod
    def by_members(ranks: Sequence[int], name: str, store: Store, timeout_seconds: float = 0.0) -> ProcessSet:
        """Makes the same set, but only its members call this, while the others may do anything.

        name: the same on all members, and of no other set that a member is in. store: through it they find each
        other: an object with ``set(key, value)``, ``get(key)`` and ``check([key])``, such as a
        torch.distributed.Store. timeout_seconds: how long to wait for the other members, of which the missing ones are
        named by a Timeout; 0: DDL_START_TIMEOUT_SECONDS. What the store raises is the cause of the Error.
        """
        return ProcessSet(make_set(context(), ranks, name, store, timeout_seconds))

    def split(self, color: int, key: int = 0) -> ProcessSet:
        """The ranks with the same color, by key; a negative color: none. Collective over this set."""
        made = ffi.new("uint64_t *")
        check(lib.ddl_process_set_split(context(), self._number, color, key, made))
        return ProcessSet(int(made[0]))

    @property
    def number(self) -> int:
        return self._number

    @property
    def rank(self) -> int | None:
        """This rank's number in the set; None: it is not in it."""
        number = int(lib.ddl_process_set_rank(context(), self._number))
        return None if number < 0 else number

    @property
    def size(self) -> int | None:
        number = int(lib.ddl_process_set_size(context(), self._number))
        return None if number < 0 else number

    @property
    def ranks(self) -> list[int]:
        """The ranks in the job of its members."""
        members = ffi.new("int32_t[]", self.size or 0)
        check(lib.ddl_process_set_ranks(context(), self._number, members))
        return list(members)

    def free(self) -> None:
        """Leaves the set, which cannot be used any more."""
        check(lib.ddl_process_set_free(context(), self._number))
        self._number = _NO_SET

    def __repr__(self) -> str:
        return f"ProcessSet({'no set' if self._number == _NO_SET else self._number})"


world = ProcessSet(_WORLD)


# Looked up once, not at each call.
_CALL_OPTIONS = ffi.typeof("ddl_call_options *")
_CALL_OPTIONS_SIZE = ffi.sizeof("ddl_call_options")


def call_options(process_set: ProcessSet, timeout_seconds: float, stream: Any = NULL, *scales: float) -> Any:
    """scales: prescale and postscale; none: 1."""
    values = (_CALL_OPTIONS_SIZE, 0, process_set.number, timeout_seconds, stream, *(scales or (1.0, 1.0)))
    return ffi.new(_CALL_OPTIONS, values)


def call_ordered(
    function: Callable[..., int], arguments: Sequence[Any],
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = NULL, *scales: float,
) -> None:
    """Makes an ordered call of libddl. scales: prescale and postscale; none: 1."""
    check(function(context(), *arguments, call_options(process_set, timeout_seconds, stream, *scales)))


def members_of(process_set: ProcessSet) -> int:
    """How many ranks the set has; for one that this rank is not in, libddl refuses the call."""
    return process_set.size or 0


def _reduced(
    function: Callable[..., int], array: Any, how: Sequence[int], out: Any,
    process_set: ProcessSet, timeout_seconds: float, stream: Any, dtype: str | None, *scales: float,
) -> Any:
    """allreduce, reduce and scan, of an array or of a number. how: the operation, and the root, if there is one."""
    number = number_of(array)
    if number is not None:
        memory, code = number
        send = recv = buffer_of(memoryview(memory).cast(code), "the number", writable=True)
        stream = None
    else:
        send = buffer_of(array, "the array", dtype=dtype)
        out = new_like(array) if out is None else out
        recv = place_for(out, send.count, send, dtype)
    arguments = (send.address, recv.address, send.count, send.dtype, *how)
    call_ordered(function, arguments, process_set, timeout_seconds, stream_of(send, stream), *scales)
    return out if number is None else struct.unpack(code, memory)[0]


def _in_place(
    function: Callable[..., int], array: Any, peer: int,
    process_set: ProcessSet, timeout_seconds: float, stream: Any, dtype: str | None, writable: bool = True,
) -> Any:
    """broadcast, send and recv: calls of one array, and of another rank."""
    buffer = buffer_of(array, "the array", writable=writable, dtype=dtype)
    arguments = (buffer.address, buffer.count, buffer.dtype, peer)
    call_ordered(function, arguments, process_set, timeout_seconds, stream_of(buffer, stream))
    return array


def _gathered(
    function: Callable[..., int], array: Any, root: Sequence[int], out: Any,
    process_set: ProcessSet, timeout_seconds: float, stream: Any, dtype: str | None,
) -> Any:
    """allgather and gather. root: of gather."""
    send = buffer_of(array, "the array", dtype=dtype)
    recv = NOTHING
    receives = not root or process_set.rank == root[0]
    if receives:
        ranks = members_of(process_set)
        if out is None:
            shape = getattr(array, "shape", (send.count,)) or (1,)
            out = new_like(array, (ranks * shape[0], *shape[1:]))
        recv = place_for(out, ranks * send.count, send, dtype)
    arguments = (send.address, recv.address, send.count, send.dtype, *root)
    call_ordered(function, arguments, process_set, timeout_seconds, stream_of(send, stream))
    return out if receives else None


def allreduce(
    array: Any, op: int = SUM, *, out: Any = None, prescale: float = 1.0, postscale: float = 1.0,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """The ranks' arrays combined, element by element: the same bits on every rank.

    array: anything with the buffer protocol, an array on a GPU, or a number, of which a number is returned.
    out: where the result goes, which may be array itself; None: a new array.
    stream: the handle of the GPU's stream; None: the array's own.
    """
    scales = prescale, postscale
    return _reduced(lib.ddl_allreduce, array, (op,), out, process_set, timeout_seconds, stream, dtype, *scales)


def reduce(
    array: Any, op: int = SUM, root: int = 0, *, out: Any = None,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """Like allreduce(), for root alone. The others' result is not to be used."""
    return _reduced(lib.ddl_reduce, array, (op, root), out, process_set, timeout_seconds, stream, dtype)


def scan(
    array: Any, op: int = SUM, *, out: Any = None,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """On rank r, the arrays of ranks 0 to r combined."""
    return _reduced(lib.ddl_scan, array, (op,), out, process_set, timeout_seconds, stream, dtype)


def broadcast(
    array: Any, root: int = 0, *,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """Root's elements, in every rank's array, which is returned."""
    return _in_place(lib.ddl_broadcast, array, root, process_set, timeout_seconds, stream, dtype)


def allgather(
    array: Any, *, out: Any = None,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """Every rank's array, one after the other along the first dimension. All have the same number of elements."""
    return _gathered(lib.ddl_allgather, array, (), out, process_set, timeout_seconds, stream, dtype)


def reduce_scatter(
    array: Any, op: int = SUM, *, out: Any, counts: Sequence[int] | None = None,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """The ranks' arrays combined, of which rank r gets counts[r] elements in out. counts: None: equal parts."""
    send = buffer_of(array, "the array", dtype=dtype)
    ranks = members_of(process_set)
    parts = [send.count // max(ranks, 1)] * ranks if counts is None else list(counts)
    if len(parts) != ranks or sum(parts) != send.count:
        raise InvalidArgument(f"counts must be {ranks} numbers whose sum is {send.count}")
    own = process_set.rank
    recv = NOTHING if own is None else place_for(out, parts[own], send, dtype)
    arguments = (send.address, recv.address, ffi.new("uint64_t[]", parts), send.dtype, op)
    call_ordered(lib.ddl_reduce_scatter, arguments, process_set, timeout_seconds, stream_of(send, stream))
    return out


def alltoall(
    array: Any, *, out: Any = None,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """The r-th part of array goes to rank r, whose part comes as the r-th of the result. Parts are equal."""
    send = buffer_of(array, "the array", dtype=dtype)
    ranks = members_of(process_set)
    if ranks and send.count % ranks:
        raise InvalidArgument(f"{send.count} elements are no {ranks} equal parts")
    out = new_like(array) if out is None else out
    recv = place_for(out, send.count, send, dtype)
    arguments = (send.address, recv.address, send.count // max(ranks, 1), send.dtype)
    call_ordered(lib.ddl_alltoall, arguments, process_set, timeout_seconds, stream_of(send, stream))
    return out


def gather(
    array: Any, root: int = 0, *, out: Any = None,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """Every rank's array, one after the other, on root; None on the others."""
    return _gathered(lib.ddl_gather, array, (root,), out, process_set, timeout_seconds, stream, dtype)


def scatter(
    array: Any, root: int = 0, *, out: Any,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """The r-th part of root's array, in out of rank r. The others' array is not used, and may be None."""
    recv = buffer_of(out, "out", writable=True, dtype=dtype)
    send = NOTHING
    if process_set.rank == root:
        send = buffer_of(array, "the array", dtype=dtype)
        same_type(send, recv)
        if send.count != members_of(process_set) * recv.count:
            raise InvalidArgument(
                f"the array has {send.count} elements, and out {recv.count} of each of {members_of(process_set)} ranks"
            )
    arguments = (send.address, recv.address, recv.count, recv.dtype, root)
    call_ordered(lib.ddl_scatter, arguments, process_set, timeout_seconds, stream_of(recv, stream))
    return out


def send(
    array: Any, to: int, *,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> None:
    """Sends the array to a rank that calls recv()."""
    _in_place(lib.ddl_send, array, to, process_set, timeout_seconds, stream, dtype, writable=False)


def recv(
    array: Any, source: int, *,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, stream: Any = None, dtype: str | None = None,
) -> Any:
    """Stores in the array, which is returned, what a rank sends."""
    return _in_place(lib.ddl_recv, array, source, process_set, timeout_seconds, stream, dtype)


def barrier(*, process_set: ProcessSet = world, timeout_seconds: float = 0.0) -> None:
    """Returns when every rank has called it."""
    call_ordered(lib.ddl_barrier, (), process_set, timeout_seconds)


def mark(name: str) -> None:
    """Marks this moment in the timeline of the job."""
    check(lib.ddl_mark(context(), name.encode()))
