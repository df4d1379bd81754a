"""How libddl's ranks find each other where PyTorch's means have started them: torchrun, or the program itself.

libddl asks a launcher by PMI-1, lines over a descriptor. Here a thread of each rank answers in the launcher's place,
from the key-value store that PyTorch gives.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import socket
import threading
from typing import Any, Iterator

import ddl
from ddl._context import _shutdown_at_exit
from ddl.torch.distributed.joining import Keys, meet
from ddl.torch.distributed.works import seconds_of

# What a launcher sets for its ranks, and what torchrun sets for its own; ddlrun removes that.
_OF_A_LAUNCHER = ("PMIX_NAMESPACE", "PMIX_RANK", "PMI_FD", "PMI_RANK", "PMI_SIZE", "DDL_JOB_KEY_FD", "DDL_RANK_RECORD")
_OF_TORCHRUN = "TORCHELASTIC_ERROR_FILE"

_PATIENCE_SECONDS = 0.5  # of a wait, after which a thread sees that it is to end


class _Job:
    """What is asked for one ddl.init()."""

    def __init__(self, keys: Keys, rank: int, size: int):
        self._keys, self.rank, self.size = keys, rank, size
        self._barriers = 0
        self.is_over = False  # libddl does not wait for answers any more

    def answer(self, words: dict[str, str]) -> str:
        """To a line; "": it needs none."""
        command = words["cmd"]
        if command == "put":
            self._keys.set(words["key"], words["value"].encode())
            return "cmd=put_result rc=0"
        if command == "get":
            if not self._keys.check([words["key"]]):
                return "cmd=get_result rc=-1 msg=no_such_key"
            return f"cmd=get_result rc=0 value={self._keys.get(words['key']).decode()}"
        if command == "barrier_in":
            self._barrier()
            return "cmd=barrier_out rc=0"
        return {
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
            "get_my_kvsname": "cmd=my_kvsname kvsname=torch",
            "finalize": "cmd=finalize_ack rc=0",
        }.get(command, "")

    def _barrier(self) -> None:
        self._barriers += 1
        name = f"barrier/{self._barriers}"
        if self._keys.store.add(name, 1) == self.size:
            self._keys.set(f"{name}/end", b"all are here")
        while self._keys.missing([f"{name}/end"], _PATIENCE_SECONDS) and not self.is_over:
            pass


class _Connection:
    """With libddl, for the life of the process."""

    def __init__(self, job: _Job):
        self.job = job
        self._own, others = socket.socketpair()
        self.descriptor = others.detach()
        self._thread = threading.Thread(target=self._serve, name="ddl-launcher", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def _serve(self) -> None:
        try:
            for line in self._own.makefile("rb"):
                answer = self.job.answer(dict(word.split("=", 1) for word in line.decode().split()))
                if answer:
                    self._own.sendall(f"{answer}\n".encode())
        finally:  # libddl must not wait for an answer
            self._own.shutdown(socket.SHUT_RDWR)

    def _end(self) -> None:
        _shutdown_at_exit()
        self.job.is_over = True
        with contextlib.suppress(OSError):  # it has ended already
            self._own.shutdown(socket.SHUT_RDWR)  # libddl says goodbye later, and would wait for an answer
        self._thread.join(10 * _PATIENCE_SECONDS)  # the end of Python would end it inside C++, which aborts


_connection: _Connection | None = None


@contextlib.contextmanager
def _in_place_of_a_launcher(connection: _Connection) -> Iterator[None]:
    kept = {name: os.environ.pop(name) for name in _OF_A_LAUNCHER if name in os.environ}
    own = {"PMI_FD": connection.descriptor, "PMI_RANK": connection.job.rank, "PMI_SIZE": connection.job.size}
    os.environ.update({name: str(value) for name, value in own.items()})
    try:
        yield
    finally:
        for name in own:
            del os.environ[name]
        os.environ.update(kept)


def init(store: Any, rank: int, size: int, timeout: Any) -> None:
    """ddl.init(); by the store, if no launcher has started this rank that libddl can ask. timeout: for the others."""
    global _connection
    has_launcher = ("PMIX_NAMESPACE" in os.environ or "PMI_FD" in os.environ) and _OF_TORCHRUN not in os.environ
    if ddl.is_initialized() or size == 1 or has_launcher:
        ddl.init()
        return
    keys = Keys(store, rank)
    meet(keys, rank, size, seconds_of(timeout), b"here")
    job = _Job(keys, rank, size)
    if _connection is None:
        _connection = _Connection(job)
    _connection.job = job
    with _in_place_of_a_launcher(_connection):
        ddl.init()
