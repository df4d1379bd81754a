"""The package ddl with NumPy's arrays, and with other buffers."""
import array
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy as np

import ddl
from ddl._buffers import buffer_of
from ddl._library import ffi, lib
from ddl._tensors import Options
from ddl.errors import check
from harness import raises, run


def test_before_init():
    assert not ddl.is_initialized()
    with raises(ValueError, "call ddl.init() first"):
        ddl.rank()


def test_frameworks_that_are_not_installed():
    for module in ("tensorflow", "tensorflow.keras", "keras"):
        with raises(ModuleNotFoundError, f"pip install {module.partition('.')[0]}"):
            importlib.import_module(f"ddl.{module}")


def test_numbers_of_the_rank():
    ddl.init()
    ddl.init()  # does nothing
    assert ddl.is_initialized()
    assert ddl.rank() == int(os.environ["RANK"]) and ddl.size() == int(os.environ["WORLD_SIZE"])
    assert ddl.local_rank() == int(os.environ["LOCAL_RANK"]) and ddl.cross_size() >= 1
    assert ddl.version().startswith("0.2") and ddl.backend_name() == "ddl"


def test_allreduce():
    ranks = ddl.size()
    total = ranks * (ranks - 1) / 2
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    for dtype in (*integers, "float16", "float32", "float64"):
        given = np.full((2, 3), ddl.rank(), dtype)
        result = ddl.allreduce(given)
        assert result.dtype == given.dtype and result.shape == (2, 3) and (result == total).all(), dtype
        assert (given == ddl.rank()).all(), "the input was changed"
        assert ddl.allreduce(given, ddl.MAX, out=given) is given and (given == ranks - 1).all()
    assert (ddl.allreduce(np.array([ddl.rank() == 0]), ddl.LOGICAL_OR) == [True]).all()
    scaled = ddl.allreduce(np.ones(3), ddl.AVERAGE, prescale=2.0, postscale=0.25)
    assert (scaled == 0.5).all()
    assert ddl.allreduce(np.zeros(0)).shape == (0,)


def test_numbers():
    assert ddl.allreduce(ddl.rank()) == ddl.size() * (ddl.size() - 1) // 2
    assert isinstance(ddl.allreduce(1), int) and isinstance(ddl.allreduce(1.0), float)
    assert ddl.allreduce(0.5, ddl.PRODUCT) == 0.5 ** ddl.size()
    with raises(ValueError, "does not fit into 64 bits"):
        ddl.allreduce(2**70)


def test_other_buffers():
    plain = array.array("i", [ddl.rank(), 1])
    ddl.allreduce(plain, out=plain)
    assert plain[1] == ddl.size()
    text = bytearray(b"rank %d" % ddl.rank())
    assert ddl.broadcast(text, 0) == b"rank 0"
    half = np.full(4, 0x3F80, np.uint16)  # ones
    ddl.allreduce(half, out=half, dtype="bfloat16")
    assert (half == {1: 0x3F80, 2: 0x4000, 3: 0x4040, 4: 0x4080}[ddl.size()]).all()


def test_moves():
    rank, ranks = ddl.rank(), ddl.size()
    gathered = ddl.allgather(np.full((2, 3), rank, np.int32))
    assert gathered.shape == (2 * ranks, 3) and (gathered[:, 0] == np.repeat(np.arange(ranks), 2)).all()
    on_root = ddl.gather(np.array([rank]), root=ranks - 1)
    assert on_root is None if rank != ranks - 1 else (on_root == np.arange(ranks)).all()
    part = ddl.scatter(np.arange(2 * ranks) if rank == 0 else None, out=np.empty(2, np.int64))
    assert (part == [2 * rank, 2 * rank + 1]).all()
    exchanged = ddl.alltoall(np.arange(ranks) + 10 * rank)
    assert (exchanged == rank + 10 * np.arange(ranks)).all()
    counts = [1] * (ranks - 1) + [2]
    mine = ddl.reduce_scatter(np.arange(ranks + 1.0), out=np.empty(counts[rank]), counts=counts)
    assert mine[0] == rank * ranks
    assert (ddl.scan(np.array([1])) == rank + 1).all()
    on_first = ddl.reduce(np.array([1.0]))
    assert rank != 0 or on_first[0] == ranks
    if ranks > 1 and rank < 2:
        if rank == 0:
            ddl.send(np.array([3.5]), 1)
        else:
            assert ddl.recv(np.empty(1), 0)[0] == 3.5
    ddl.barrier()


def test_messages():
    rank, ranks = ddl.rank(), ddl.size()
    incoming = ddl.recv_async(np.empty(2))
    outgoing = ddl.send_async(np.array([rank, 1.5]), (rank + 1) % ranks, tag=4)
    before = (rank - 1) % ranks
    assert (incoming.wait() == [before, 1.5]).all() and incoming.source == before
    assert (outgoing.wait() == [rank, 1.5]).all()


def test_process_sets():
    last = ddl.ProcessSet.of([ddl.size() - 1])
    is_last = ddl.rank() == ddl.size() - 1
    assert last.rank == (0 if is_last else None) and ddl.world.size == ddl.size()
    if is_last:
        assert last.ranks == [ddl.size() - 1]
        assert ddl.allreduce(5, process_set=last) == 5
    else:
        with raises(ddl.InvalidArgument, "does not exist, or this rank is not in it"):
            ddl.allreduce(5, process_set=last)
    pair = ddl.world.split(ddl.rank() % 2)
    assert ddl.allreduce(1, process_set=pair) == pair.size
    pair.free()


def test_objects():
    rank, ranks = ddl.rank(), ddl.size()
    last = ddl.broadcast_object({"from": rank, "text": "é" * rank}, ranks - 1)
    assert last == {"from": ranks - 1, "text": "é" * (ranks - 1)}
    assert ddl.allgather_object((rank, [None] * rank)) == [(one, [None] * one) for one in range(ranks)]
    assert ddl.broadcast_object(lambda x: x + rank)(1) == 1  # by cloudpickle


def test_objects_with_large_arrays():
    rank, ranks = ddl.rank(), ddl.size()
    fixed = np.full(20_000, rank, np.float64)
    fixed.flags.writeable = False
    sent = {
        "read-only": fixed,
        "fortran": np.asfortranarray(np.arange(20_000, dtype=np.int32).reshape(100, 200) + rank),
        "strided": np.arange(40_000, dtype=np.float32)[::2] + np.float32(rank),
        "half": np.full((3, 40_000), rank, np.float16),
        "mixed": np.full(9000, rank, [("a", "f8"), ("b", "i1")]),
        "small": np.full(3, rank),
        "empty": np.zeros((0, 5)),
        "text": [str(rank)] * 10_000,
    }
    sent["again"] = sent["half"]
    for root in (0, ranks - 1):
        taken = ddl.broadcast_object(sent, root)
        assert list(taken) == list(sent) and taken["text"] == [str(root)] * 10_000
        for name in ("read-only", "half", "mixed", "small"):
            expected = np.full_like(sent[name], root)
            assert taken[name].dtype == expected.dtype and taken[name].shape == expected.shape, name
            assert (taken[name] == expected).all(), name
        assert (taken["fortran"] == sent["fortran"] - rank + root).all() and taken["fortran"].flags.f_contiguous
        assert (taken["strided"] == np.arange(0, 40_000, 2) + root).all()
        assert taken["empty"].shape == (0, 5) and taken["again"] is taken["half"]
        taken["half"][...] = root  # may be written
        assert not taken["read-only"].flags.writeable


def test_named_tensors():
    rank, ranks = ddl.rank(), ddl.size()
    names = [f"tensor {i}" for i in range(20)]
    handles = {name: ddl.allreduce_async(np.full(100, i, np.float32), name) for i, name in enumerate(names)}
    for i, name in enumerate(reversed(names)):
        assert (handles[name].wait() == (19 - i) * ranks).all()
    with raises(ValueError, "wait() has been called before"):
        handles["tensor 0"].wait()
    rows = ddl.allgather_async(np.full((rank + 1, 2), rank)).wait()
    assert rows.shape == (ranks * (ranks + 1) // 2, 2) and rows[-1, 0] == ranks - 1
    copy = np.full(3, rank)
    assert ddl.broadcast_async(copy, root=ranks - 1).wait() is copy and (copy == ranks - 1).all()
    ddl.allreduce_async(np.ones(10), "nobody waits")
    assert (ddl.allreduce_async(np.ones(10), "the next").wait() == ranks).all()
    if rank != 0:
        ddl.allreduce_async(np.ones(1)).wait()
    assert ddl.join() in range(ranks)
    # What has no name is numbered anew: the ranks have made different numbers of calls.
    assert ddl.allreduce_async(np.ones(1)).wait() == ranks


def test_ready_tensors_of_a_higher_priority_go_first():
    """Each rank submits all of them in a callback, during which libddl carries nothing out."""
    if ddl.size() == 1:
        return
    # Together they are too large to be carried out as one.
    arrays = {name: np.ones(1 << 18, np.float32) for name in ("start", "low", "none", "high")}
    priorities, order, handles = {"start": 0, "low": -1, "none": 0, "high": 7}, [], []

    def submit(name):
        options, array = Options(priority=priorities[name]), buffer_of(arrays[name], name)
        options._values.completed = callbacks[name]
        call = array.address, array.address, array.count, array.dtype, ddl.SUM
        handles.append(options.submit(lib.ddl_allreduce_async, name.encode(), *call))

    def completed(name):
        def complete(*_):
            order.append(name)
            if name == "start":
                for one in ("low", "none", "high"):
                    submit(one)

        return ffi.callback("ddl_completion", complete)

    callbacks = {name: completed(name) for name in arrays}
    submit("start")
    while handles:
        check(lib.ddl_wait(handles.pop(0)))
    assert order == ["start", "high", "none", "low"], order
    assert all((array == ddl.size()).all() for array in arrays.values())
    # As a program says it.
    result = ddl.allreduce_async(np.ones(2), "by name", priority=3).wait()
    assert (result == ddl.size()).all()
    with raises(ddl.Mismatch, "priority"):
        ddl.allreduce_async(np.ones(2), "by name", priority=ddl.rank() % 2).wait()


def test_mistakes():
    with raises(ValueError, "the array is not contiguous"):
        ddl.allreduce(np.ones((4, 4))[:, 1])
    with raises(ValueError, "the array is of list, which is no array"):
        ddl.allreduce([1, 2])
    with raises(ValueError, "is of a type that libddl does not have; its types are int8,"):
        ddl.allreduce(np.ones(2, np.complex64))
    with raises(ValueError, "give the result's place with out="):
        ddl.allreduce(array.array("i", [1]))
    with raises(ValueError, "out has 3 elements instead of 2"):
        ddl.allreduce(np.ones(2), out=np.ones(3))
    with raises(ValueError, "of different types"):
        ddl.allreduce(np.ones(2), out=np.ones(2, np.float32))
    with raises(ValueError, "the array may not be written"):
        ddl.broadcast(b"constant")
    with raises(ddl.InvalidArgument, "there is no bitwise and of float64"):
        ddl.allreduce(np.ones(2), ddl.BIT_AND)
    if ddl.size() > 1:
        with raises(ddl.Mismatch, "rank 0 on ", "float64, 2 elements"):
            ddl.allreduce(np.ones(2 + ddl.rank() % 2))


def test_other_threads_run_while_a_call_waits():
    # The thread of rank 0 submits what the main thread of each rank waits for.
    if ddl.rank() == 0:
        answer = []
        thread = threading.Thread(target=lambda: answer.append(ddl.allreduce_async(np.ones(1), "late").wait()))
        handle = ddl.allreduce_async(np.ones(1), "early")
        thread.start()
        handle.wait()
        thread.join()
        assert answer[0] == ddl.size()
    else:
        late = ddl.allreduce_async(np.ones(1), "late")
        ddl.allreduce_async(np.ones(1), "early").wait()
        late.wait()


def test_other_processes_of_the_rank():
    """Those that the rank starts, or forks, cannot join in its place, and are told so; a world of their own they can."""
    child = [sys.executable, "-c", "import ddl; ddl.init(); print(ddl.size())"]
    refusal = f"rank {ddl.rank()} is process {os.getpid()}, and this process (pid "
    for close_fds in True, False:
        started = subprocess.run(child, close_fds=close_fds, capture_output=True, text=True, timeout=60)
        assert started.returncode == 1 and refusal in started.stderr, started.stderr
        assert "InvalidArgument" in started.stderr
    remedy = re.search(r"env (-u .*=1)$", started.stderr, re.MULTILINE).group(0).split()
    alone = subprocess.run([*remedy, *child], close_fds=False, capture_output=True, text=True, timeout=60)
    assert alone.stdout == "1\n", alone.stderr
    forked = os.fork()
    if forked == 0:
        try:
            ddl.init()
        except ddl.Aborted as error:
            os._exit(0 if "forked without exec" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(forked, 0)[1] == 0
    ddl.barrier()


def test_a_rank_that_does_not_call():
    # The last test: it ends the context. Ranks 0 and 1 need the same files.
    if ddl.size() == 1 or ddl.allreduce(ddl.cross_rank() if ddl.rank() == 1 else 0) > 0:
        return
    folder = ddl.broadcast_object(tempfile.mkdtemp() if ddl.rank() == 0 else None)
    done = os.path.join(folder, "done")
    if ddl.rank() == 0:
        os.mkfifo(done)
    ddl.barrier()
    if ddl.rank() > 0:
        with raises(TimeoutError, "not arrived: rank 0 on "):
            ddl.barrier(timeout_seconds=0.5)
    if ddl.rank() == 1:
        open(done, "w").close()  # when rank 0 reads
    elif ddl.rank() == 0:
        open(done).close()
        shutil.rmtree(folder)
    with raises(ddl.Error):
        ddl.barrier()


if __name__ == "__main__":
    number = int(os.environ["RANK"])
    run(globals(), number)
