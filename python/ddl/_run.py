"""A function on several ranks, started from a notebook or from a program."""
from __future__ import annotations

import base64
import pickle
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any, Callable, Sequence

# What a rank sends is cut into lines of this many characters.
LINE = 60_000
_MOST_REPORTED = 200


class RunError(RuntimeError):
    """A rank of run() failed. ``exit_code``: ddlrun's; ``report``: what ranks and ddlrun wrote to standard error."""

    def __init__(self, exit_code: int, report: str):
        super().__init__(f"ddlrun ended with exit code {exit_code}\n{report}")
        self.exit_code = exit_code
        self.report = report


def _pickled(task: Any) -> bytes:
    try:
        import cloudpickle

        return cloudpickle.dumps(task)
    except ImportError:
        return pickle.dumps(task)


class _Results:
    """Takes the ranks' results out of the lines of standard output, and shows the others."""

    def __init__(self, mark: str):
        self._mark = mark
        self._parts: dict[int, list[str]] = {}

    def take(self, line: str) -> None:
        begin = line.find(self._mark)
        if begin < 0:
            print(line, end="", flush=True)
            return
        # The function may have left a line open.
        if line[:begin].split("<stdout>:", 1)[-1]:
            print(line[:begin], flush=True)
        rank, text = line[begin + len(self._mark) :].split()
        self._parts.setdefault(int(rank), []).append(text)

    def of(self, ranks: int) -> list[Any]:
        missing = [rank for rank in range(ranks) if rank not in self._parts]
        if missing:
            raise RunError(0, f"no result came from ranks {missing}: did the function end the process?")
        return [pickle.loads(base64.b64decode("".join(self._parts[rank]))) for rank in range(ranks)]


def run(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    np: int = 1,
    hosts: str | None = None,
    options: Sequence[str] = (),
    python: str | None = None,
) -> list[Any]:
    """Calls function(*args, **kwargs) on np ranks, and returns the results by rank.

    hosts: as for ddlrun -H, ``"a:2,b:2"``; None: this machine. options: further ones of ddlrun. python: the
    interpreter, the same path on all hosts; None: this one.
    """
    ddlrun = shutil.which("ddlrun")
    if ddlrun is None:
        raise FileNotFoundError("ddlrun is not in PATH; add its folder, or load your site's module")
    mark = f"ddl-result-{secrets.token_hex(16)} "
    task = _pickled((mark, function, tuple(args), dict(kwargs or {})))
    words = [ddlrun, "-np", str(np), "--stdin", "all"]
    words += ["-H", hosts] if hosts else ["--oversubscribe"]
    words += [*options, python or sys.executable, "-m", "ddl._run_rank"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    results, report = _Results(mark), []

    def feed() -> None:
        try:
            process.stdin.write(task)
            process.stdin.close()
        except BrokenPipeError:
            pass  # the job has ended, and says why

    def show_errors() -> None:
        for line in process.stderr:
            text = line.decode("utf-8", "replace")
            report.append(text)
            del report[:-_MOST_REPORTED]
            print(text, end="", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=feed), threading.Thread(target=show_errors)]
    for thread in threads:
        thread.start()
    try:
        for line in process.stdout:
            results.take(line.decode("utf-8", "replace"))
        exit_code = process.wait()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        for _ in process.stdout:
            pass
        process.wait()
        raise
    finally:
        for thread in threads:
            thread.join()
    if exit_code != 0:
        raise RunError(exit_code, "".join(report))
    return results.of(np)
