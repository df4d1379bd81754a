"""ddl.run(): a function on several ranks. This program is no rank."""
import contextlib
import io
import os
import signal
import threading

import ddl
from harness import raises, run


def test_results_by_rank():
    def work(first, second=0):
        import ddl

        ddl.init()
        print("here")
        print("open", end="")
        return ddl.rank(), ddl.allreduce(first + second)

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        results = ddl.run(work, args=(2,), kwargs={"second": 3}, np=3)
    assert results == [(0, 15), (1, 15), (2, 15)]
    lines = out.getvalue().splitlines()
    assert sorted(lines) == sorted(f"[{rank}]<stdout>:{text}" for rank in range(3) for text in ("here", "open")), lines
    assert "ddl-result" not in out.getvalue()


def test_large_results():
    results = ddl.run(lambda: os.urandom(3_000_000), np=2, options=["--framework", "none"])
    assert [len(result) for result in results] == [3_000_000] * 2


def test_failure():
    def fail():
        raise KeyError("what was not there")

    err = io.StringIO()
    with contextlib.redirect_stderr(err), raises(ddl.RunError, "exit code 1", "what was not there"):
        ddl.run(fail, np=2)
    assert "KeyError" in err.getvalue()
    with contextlib.redirect_stderr(err), raises(ddl.RunError, "exit code 2"):
        ddl.run(fail, np=2, options=["--no-such-option"])
    with raises(ddl.RunError, "no result came from ranks [0]"):
        ddl.run(lambda: os._exit(0), np=1)


def test_interrupt():
    def wait():
        import signal

        print("waiting", flush=True)
        signal.pause()  # until ddlrun ends it

    class Interrupting(io.StringIO):
        def write(self, text):
            if "waiting" in text:
                os.kill(os.getpid(), signal.SIGINT)
            return super().write(text)

    with contextlib.redirect_stdout(Interrupting()), contextlib.redirect_stderr(io.StringIO()):
        with raises(KeyboardInterrupt):
            ddl.run(wait, np=2)


def test_without_ddlrun():
    path = os.environ["PATH"]
    os.environ["PATH"] = "/nowhere"
    try:
        with raises(FileNotFoundError, "ddlrun is not in PATH"):
            ddl.run(print)
    finally:
        os.environ["PATH"] = path


if __name__ == "__main__":
    assert threading.current_thread() is threading.main_thread()
    run(globals(), 0)
