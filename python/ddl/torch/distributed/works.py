"""The calls of a group, one after the other, and the works that stand for them in the program."""
from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue
from typing import Any, Callable

import torch
import torch.distributed as dist

import ddl

BackendError = getattr(dist, "DistBackendError", RuntimeError)  # since PyTorch 2.0


def seconds_of(timeout: Any) -> float:
    """Of a timedelta; 0: no limit is given."""
    return 0.0 if timeout is None else max(timeout.total_seconds(), 0.0)


def as_backend_error(error: BaseException) -> BaseException:
    """libddl's error as that of PyTorch; what is wrong with an argument remains a ValueError."""
    if not isinstance(error, ddl.Error) or isinstance(error, ValueError):
        return error
    text = str(error)
    if isinstance(error, ddl.Timeout):
        text += "; the timeout is that of init_process_group() or new_group(), unless the call has its own"
    new = BackendError(text)
    new.__cause__ = error
    return new


_kept_lock = threading.Lock()


class Work(dist._Work if hasattr(dist, "_Work") else dist.Work):
    """A call of a group, or a message.

    calls: has make_until(work), which makes it now, or returns False if another thread is about to; look(work), which
    makes it if that needs no waiting, and wake(work), which lets another thread make it.

    Older versions of PyTorch may keep its C++ part alone, whose wait() never ends. So each lives until somebody has
    waited for it or has taken its future; of those that nobody asks for, the latest, and those that go on.
    """

    _kept: dict[Work, None] = {}
    _most_kept = 256

    def __init__(self, calls: Any, call: Callable[[], None], result: Any, somebody_waits: bool = False):
        super().__init__()
        self.source = -1  # of a message that was received
        self._calls = calls
        self._call: Callable[[], None] | None = call
        self._result = result
        self._error: BaseException | None = None
        self.is_done = False
        self._is_taken = somebody_waits
        self._done = threading.Lock()  # held until it is done
        self._done.acquire()
        self._end: torch.futures.Future | None = None  # made when somebody asks for the future
        self._future: torch.futures.Future | None = None
        if not somebody_waits:
            self._keep()

    def _keep(self) -> None:
        with _kept_lock:
            Work._kept[self] = None
            oldest = next(iter(Work._kept)) if len(Work._kept) > Work._most_kept else None
            if oldest is not None:
                del Work._kept[oldest]
        if oldest is not None and not oldest.is_completed():
            with _kept_lock:
                Work._kept[oldest] = None

    def make(self) -> None:
        """Makes the call."""
        call, self._call = self._call, None
        try:
            call()
        except BaseException as error:
            self.finish(as_backend_error(error))
        else:
            self.finish(None)

    def finish(self, error: BaseException | None) -> None:
        self._error = error
        with _kept_lock:
            self.is_done = True
            end = self._end
            if self._is_taken and self in Work._kept:
                del Work._kept[self]
        self._done.release()
        if end is not None:
            end.set_result(None)

    def _take(self) -> None:
        if self._is_taken and self.is_done:
            return
        with _kept_lock:
            self._is_taken = True
            if self.is_done:
                Work._kept.pop(self, None)

    def wait(self, timeout: Any = None) -> bool:
        seconds = seconds_of(timeout)
        self._take()
        if not self.is_done and (seconds or not self._calls.make_until(self)):
            self._calls.wake(self)
            if not self._done.acquire(timeout=seconds or -1):
                raise BackendError(f"Timed out: the call has not ended within {seconds:g} s")
            self._done.release()
            self._take()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if not self.is_done:
            self._calls.look(self)
        return self.is_done

    def is_success(self) -> bool:
        return self.is_done and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def get_future(self) -> torch.futures.Future:
        self._take()
        with _kept_lock:
            is_done = self.is_done
            if self._future is None:
                self._end = torch.futures.Future()
                # This one fails if its function raises, which C++ understands; set_exception() is for Python alone, and
                # DistributedDataParallel would take the error for a tensor.
                self._future = self._end.then(self._outcome)
                if is_done:
                    self._end.set_result(None)
        if not is_done:
            self._calls.wake(self)
        return self._future

    def _outcome(self, _: Any) -> Any:
        if self._error is not None:
            raise self._error
        return self._result

    def result(self) -> Any:
        return self._result

    def source_rank(self) -> int:
        """In the group."""
        return self.source

    _source_rank = source_rank


def _ended(error: BaseException | None) -> Work:
    work = Work(None, lambda: None, [], somebody_waits=True)
    work.finish(error)
    return work


_DONE = _ended(None)  # of calls whose callers have waited


class Together(dist._Work if hasattr(dist, "_Work") else dist.Work):
    """Several works as one."""

    def __init__(self, works: list[Any]):
        super().__init__()
        self._works = works

    def wait(self, timeout: Any = None) -> bool:
        for work in self._works:
            work.wait(*([timeout] if timeout else []))
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return all([work.is_completed() for work in self._works])

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> BaseException | None:
        return next((error for error in (work.exception() for work in self._works) if error is not None), None)

    def result(self) -> list[Any]:
        return [work.result() for work in self._works]

    def get_future(self) -> torch.futures.Future:
        return torch.futures.collect_all([work.get_future() for work in self._works])


class Calls:
    """The calls of a group, made one at a time in the order of their submission.

    The thread that waits for one makes it, and those before it. A thread of the group makes those for which nobody
    waits; it is started when it is first needed.
    """

    def __init__(self, name: str):
        self._name = name
        self._lock = threading.Lock()
        self._pending: deque[Work] = deque()
        self._is_busy = False  # some thread makes calls
        self._is_closed = False
        self._wakes: SimpleQueue[bool] = SimpleQueue()  # False: end
        self._thread: threading.Thread | None = None

    def submit(self, call: Callable[[], None], result: Any, somebody_waits: bool) -> Work:
        """somebody_waits: the caller will wait for it at once, so it is made here if no other call goes on, and else
        there is no need to wake the thread."""
        if somebody_waits and self._begin():
            try:
                call()
            except BaseException as error:
                return _ended(as_backend_error(error))
            finally:
                self._end()
            return _DONE
        work = Work(self, call, result, somebody_waits)
        with self._lock:
            if self._is_closed:
                work.finish(BackendError(f"{self._name} was destroyed, and makes no more calls"))
                return work
            self._pending.append(work)
        if not somebody_waits:
            self.wake()
        return work

    def make_until(self, work: Work) -> bool:
        """Makes calls until this one is done. False: another thread makes calls."""
        if work.is_done or not self._begin(is_for_all=True):
            return work.is_done
        try:
            while not work.is_done and (earliest := self._earliest()):
                earliest.make()
                if earliest is not work and isinstance(earliest.exception(), KeyboardInterrupt):
                    raise KeyboardInterrupt  # it came to this thread, which may have to end
        finally:
            self._end()
        return work.is_done

    def _begin(self, is_for_all: bool = False) -> bool:
        """Whether this thread is to make calls, until _end(). is_for_all: also those that are pending; else it is only
        if there are none."""
        with self._lock:
            if self._is_busy or (not is_for_all and (self._pending or self._is_closed)):
                return False
            self._is_busy = True
            return True

    def _end(self) -> None:
        with self._lock:
            self._is_busy = False
            is_rest = bool(self._pending)
        if is_rest:
            self.wake()

    def _earliest(self) -> Work | None:
        with self._lock:
            return self._pending.popleft() if self._pending else None

    def wake(self, work: Work | None = None) -> None:
        """Lets the thread make what is pending, unless another one does."""
        with self._lock:
            if self._is_busy or not self._pending:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ddl-works", daemon=True)
                self._thread.start()
        self._wakes.put(True)

    look = wake

    def _run(self) -> None:
        while self._wakes.get():
            with self._lock:
                if self._is_busy:
                    continue
                self._is_busy = True
            while True:
                with self._lock:
                    if not self._pending:
                        self._is_busy = False
                        break
                    work = self._pending.popleft()
                work.make()
                del work

    def close(self, abandon: bool = False) -> None:
        """Ends what is pending, then the thread. abandon: only a call that is being made ends, and the others fail."""
        with self._lock:
            is_closed, self._is_closed = self._is_closed, True
            rest = list(self._pending)
            if abandon:
                self._pending.clear()
        for work in rest:
            if abandon:
                work.finish(BackendError(f"{self._name} was destroyed before this call"))
            else:
                self.wake()
                work._done.acquire()
                work._done.release()
        if is_closed or self._thread is None:
            return
        self._wakes.put(False)
        if self._thread is not threading.current_thread():
            self._thread.join()
