"""The file that an elastic job leaves when it is asked to end, and from which the next one goes on."""
from __future__ import annotations

import contextlib
import fcntl
import glob
import io
import itertools
import os
import pickle
import socket
import sys
import threading
import time
from typing import Any

from ddl.errors import InvalidArgument

_NAME = "ddl-state.pickle"
_FORMAT = 2
_LOCK_SECONDS = 10.0  # for a rank that has written here before to see that it is not rank 0 any more


class _Nowhere(io.RawIOBase):
    """A file that keeps nothing."""

    def write(self, content: Any) -> int:
        return memoryview(content).nbytes

    def writable(self) -> bool:
        return True


def first_difference(one: list[str], other: list[str]) -> tuple[str, str]:
    """Of two layouts that are not equal: the first lines in which they differ."""
    pairs = itertools.zip_longest(one, other, fillvalue="nothing")
    return next((here, there) for here, there in pairs if here != there)


def _holder_of(lock: int) -> str:
    """Who holds the lock of this descriptor's file, as words."""
    status = os.fstat(lock)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with contextlib.suppress(OSError), open("/proc/locks", encoding="utf-8") as locks:
        for words in map(str.split, locks):
            if words[1] == "FLOCK" and words[5:6] == [file]:
                return f"process {words[4]} of this host"
    return "another process"


def interval_of_job() -> int:
    """Commits after which the state is to be written, by ddlrun's --state-interval; 0: it is written at the end only."""
    has_folder = bool(os.environ.get("DDL_ELASTIC_STATE_DIR"))
    return int(os.environ.get("DDL_ELASTIC_STATE_INTERVAL", "0")) if has_folder else 0


class StateFile:
    """The last state that was written to a folder. Rank 0 alone uses it. A file is there whole, or not at all.

    Like all pickled files it runs code when it is read, so the folder must be the user's own.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self._path = os.path.join(folder, _NAME)
        self._writer: threading.Thread | None = None
        self._lock = -1  # a descriptor of the folder, which keeps other jobs from it

    @staticmethod
    def of_job() -> StateFile | None:
        """That of ddlrun's --state-dir; None: there is none."""
        folder = os.environ.get("DDL_ELASTIC_STATE_DIR")
        return StateFile(folder) if folder else None

    def open(self) -> None:
        """Makes the folder, and keeps other jobs from it until close(). Errors: OSError; InvalidArgument if another job
        uses it."""
        os.makedirs(self.folder, exist_ok=True)
        if self._lock < 0:
            self._take_lock()
        self._remove_unfinished()

    def read(self, layout: list[str]) -> tuple[int, Any] | None:
        """The number of commits and the state, which must be of this layout; None: there is no file. Errors: OSError;
        InvalidArgument."""
        self._wait()
        try:
            with open(self._path, "rb") as file:
                content = pickle.load(file)
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever the bytes make pickle do
            raise InvalidArgument(f"{self._path} cannot be read, {error!r}; remove it to begin anew") from error
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InvalidArgument(f"{self._path} is not of this version of ddl; remove it to begin anew")
        if content["layout"] != layout:
            there, here = first_difference(content["layout"], layout)
            raise InvalidArgument(
                f"{self._path} is the state of another program: it has {there} instead of {here}; "
                "remove it to begin anew"
            )
        return content["commits"], content["saved"]

    def check(self, layout: list[str], saved: Any) -> None:
        """Whether such a state can be written here. Errors: OSError; InvalidArgument if pickle cannot write it."""
        trial = self._name_of_new()
        with open(trial, "wb"):
            pass
        os.remove(trial)
        try:
            self._dump(layout, 0, saved, _Nowhere())
        except Exception as error:  # whatever the state's objects make pickle do
            raise InvalidArgument(f"the state cannot be written: {error!r}") from error

    def close(self) -> None:
        """Another rank, or another job, may use the folder now."""
        self._wait()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def is_writing(self) -> bool:
        """In the thread of write_later()."""
        return self._writer is not None and self._writer.is_alive()

    def write_later(self, layout: list[str], commits: int, saved: Any) -> None:
        """write() in a thread. saved is not changed again. If it fails, a line says so, and the earlier file remains."""
        self._writer = threading.Thread(target=self._try, args=(layout, commits, saved), daemon=True)
        self._writer.start()

    def write(self, layout: list[str], commits: int, saved: Any) -> None:
        """Replaces the file. Errors: OSError, and what pickle raises; the earlier file remains then."""
        self._wait()
        new = self._name_of_new()
        try:
            with open(new, "wb") as file:
                self._dump(layout, commits, saved, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(new)
            raise

    def remove(self) -> None:
        """The work is done, and the next job is to begin anew."""
        self._wait()
        self._remove_unfinished()
        if os.path.exists(self._path):
            os.remove(self._path)
        self.close()

    def _name_of_new(self) -> str:
        return f"{self._path}.{socket.gethostname()}.{os.getpid()}.new"

    def _dump(self, layout: list[str], commits: int, saved: Any, file: Any) -> None:
        content = {"format": _FORMAT, "layout": layout, "commits": commits, "saved": saved}
        pickle.dump(content, file, protocol=pickle.HIGHEST_PROTOCOL)

    def _take_lock(self) -> None:
        """Where the file system has no locks, there is none."""
        self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        until = time.monotonic() + _LOCK_SECONDS
        holder = ""
        while True:
            try:
                return fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not holder:
                    holder = _holder_of(self._lock)
                    print(f"ddl: {self.folder} is used by {holder}; waiting {_LOCK_SECONDS:g} s for its end",
                          file=sys.stderr, flush=True)
                if time.monotonic() > until:
                    raise InvalidArgument(
                        f"{self.folder} is used by another job, which runs now ({holder}); give each job a folder of "
                        "its own"
                    ) from None
                time.sleep(0.05)
            except OSError:
                return None

    def _remove_unfinished(self) -> None:
        """Of ranks that were killed while they wrote."""
        for path in glob.glob(f"{glob.escape(self._path)}.*.new"):
            os.remove(path)

    def _try(self, layout: list[str], commits: int, saved: Any) -> None:
        try:
            self.write(layout, commits, saved)
        except Exception as error:  # also of pickle
            print(f"ddl: the state was not saved at commit {commits}: {error!r}", file=sys.stderr, flush=True)

    def _wait(self) -> None:
        """For the thread, if there is one and this is another."""
        if self._writer not in (None, threading.current_thread()):
            self._writer.join()
