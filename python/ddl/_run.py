"""A function on several ranks, started from a notebook or from a program."""
from __future__ import annotations

import base64
import os
import pickle
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Sequence

# What a rank sends is cut into lines of this many characters: a pipe takes 4096 bytes as a whole, whatever other
# threads and processes of the rank write.
LINE = 4000
_MOST_REPORTED = 200


class RunError(RuntimeError):
    """A rank of run() failed. ``exit_code``: ddlrun's; ``report``: what ranks and ddlrun wrote to standard error."""

    def __init__(self, exit_code: int, report: str, why: str):
        super().__init__(f"ddlrun ended with exit code {exit_code}\n{why}")
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
            raise RunError(0, "", f"no result came from ranks {missing}: did the function end the process?")
        return [pickle.loads(base64.b64decode("".join(self._parts[rank]))) for rank in range(ranks)]


class _Report:
    """Takes the lines of standard error, and shows them once: ddlrun's report quotes what a rank has written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._is_in_quote = False

    def take(self, line: str) -> None:
        self.lines.append(line)
        del self.lines[:-_MOST_REPORTED]
        begins = re.match(r"  its last (line|\d+ lines) on standard error", line) is not None
        self._is_in_quote = begins or (self._is_in_quote and line.startswith("  | "))
        if not self._is_in_quote:
            print(line, end="", file=sys.stderr, flush=True)

    def why(self) -> str:
        """ddlrun's last words, with the last line that it quotes."""
        begin = max((i for i, line in enumerate(self.lines) if line.startswith("ddlrun: ")), default=len(self.lines))
        text = "".join(self.lines[begin:])
        return re.sub(r"  its last .* on standard error:?\n(?:  \|.*\n)*  \| ?(.*\n)", r"  \1", text)


def ddlrun_path() -> str:
    """The ddlrun in this package, else the one in PATH."""
    own = Path(__file__).parent / "bin" / "ddlrun"
    found = str(own) if own.exists() else shutil.which("ddlrun")
    if found is None:
        raise FileNotFoundError("ddlrun is not in PATH; add its folder, or load your site's module")
    return found


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

    hosts: as for ddlrun -H, ``"a:2,b:2"``; None: this machine. options: further ones of ddlrun, such as
    ``--oversubscribe`` for more ranks than CPUs. python: the interpreter, the same path on all hosts; None: this one.
    The ranks end with this process, however it ends. ddlrun is the one in this package, else the one in PATH.
    """
    mark = f"ddl-result-{secrets.token_hex(16)} "
    task = _pickled((mark, function, tuple(args), dict(kwargs or {})))
    words = [ddlrun_path(), "-np", str(np), "--stdin", "all"]
    # srun takes the place of ddlrun, and watches nobody.
    if "srun" not in options and "--launcher=srun" not in options:
        words += ["--end-with", str(os.getpid())]
    words += ["-H", hosts] if hosts else []
    words += [*options, python or sys.executable, "-m", "ddl._run_rank"]
    # In a session of its own: ^C at a terminal comes to this process alone, and ddlrun gets one signal, not two.
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    results, report = _Results(mark), _Report()

    def feed() -> None:
        try:
            process.stdin.write(task)
            process.stdin.close()
        except BrokenPipeError:
            pass  # the job has ended, and says why

    def show_errors() -> None:
        for line in process.stderr:
            report.take(line.decode("utf-8", "replace"))

    threads = [threading.Thread(target=feed), threading.Thread(target=show_errors)]
    for thread in threads:
        thread.start()
    try:
        for line in process.stdout:
            results.take(line.decode("utf-8", "replace"))
        exit_code = process.wait()
    except BaseException as error:
        process.send_signal(signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM)
        for _ in process.stdout:
            pass
        process.wait()
        raise
    finally:
        for thread in threads:
            thread.join()
    if exit_code != 0:
        raise RunError(exit_code, "".join(report.lines), report.why())
    return results.of(np)
