"""Process sets that are made by their members alone, through a store of torch.distributed, on each rank of a job."""
import os
import shutil
import tempfile

import torch.distributed as dist
from harness import raises, run

import ddl

SHORTLY = 0.7


def store_of_all():
    """A new store, in a folder that rank 0 removes at the end."""
    path = ddl.broadcast_object(tempfile.mkdtemp() if ddl.rank() == 0 else None)
    return path, dist.FileStore(os.path.join(path, "store"), ddl.size())


def everybody():
    return list(range(ddl.size()))


def test_members_only():
    path, store = store_of_all()
    members = everybody()[::2]
    if ddl.rank() in members:
        for _ in range(3):
            evens = ddl.ProcessSet.by_members(members[::-1], "evens", store)
            assert evens.ranks == members[::-1] and evens.size == len(members)
            assert ddl.allreduce(ddl.rank(), process_set=evens) == sum(members)
            evens.free()
    ddl.barrier()
    if ddl.rank() == 0:
        shutil.rmtree(path)


def test_missing_member():
    if ddl.size() == 1:
        return
    path, store = store_of_all()
    last = ddl.size() - 1
    if ddl.rank() != last:
        with raises(ddl.Timeout, 'process set "all" was not made: ', f"not arrived within 0.7 s: rank {last}"):
            ddl.ProcessSet.by_members(everybody(), "all", store, SHORTLY)
    ddl.barrier()
    if ddl.rank() == last:
        with raises(ddl.Timeout, "rank 0: not arrived within 0.7 s: "):
            ddl.ProcessSet.by_members(everybody(), "all", store, SHORTLY)
    both = ddl.ProcessSet.by_members(everybody(), "all", store)
    assert ddl.allreduce(1, process_set=both) == ddl.size()
    both.free()
    ddl.barrier()
    if ddl.rank() == 0:
        shutil.rmtree(path)


class Broken:
    """Fails in the way that it is told."""

    def __init__(self, store, method, error):
        self.store, self.method, self.error = store, method, error

    def _call(self, method, *arguments):
        if method == self.method:
            raise self.error
        return getattr(self.store, method)(*arguments)

    def set(self, key, value):
        return self._call("set", key, value)

    def get(self, key):
        return self._call("get", key)

    def check(self, keys):
        if self.method == "check":
            raise self.error
        return self.store.compare_set(keys[0], "?", "?") != b"?"


def test_store_that_raises():
    if ddl.size() == 1:
        return
    path, store = store_of_all()
    for method in ("get", "check"):
        name = f"broken by {method}"
        if ddl.rank() == 0:
            try:
                ddl.ProcessSet.by_members(everybody(), name, Broken(store, method, OSError("no network")))
            except ddl.Error as error:
                assert "the store has failed to get the key ddl/" in str(error), error
                assert isinstance(error.__cause__, OSError), error.__cause__
            else:
                raise AssertionError("no error was raised")
        else:
            with raises(ddl.Error, "rank 0: the store has failed to get the key ddl/"):
                ddl.ProcessSet.by_members(everybody(), name, store)
    # What is no error goes through the call.
    if ddl.rank() == 0:
        with raises(KeyboardInterrupt):
            ddl.ProcessSet.by_members(everybody(), "interrupted", Broken(store, "check", KeyboardInterrupt()))
    else:
        with raises(ddl.Error, "rank 0: the store has failed"):
            ddl.ProcessSet.by_members(everybody(), "interrupted", store)
    ddl.barrier()
    if ddl.rank() == 0:
        shutil.rmtree(path)


def test_bad_arguments():
    with raises(ddl.InvalidArgument, "name is empty"):
        ddl.ProcessSet.by_members(everybody(), "", None)
    with raises(ddl.InvalidArgument, f"{ddl.size()} is not a rank"):
        ddl.ProcessSet.by_members([ddl.size()], "x", None)


ddl.init()
run(globals(), ddl.rank())
