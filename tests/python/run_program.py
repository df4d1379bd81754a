"""ddl.run(): a function on several ranks. This program is no rank."""
import contextlib
import io
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading

import ddl
from harness import raises, run


# The machine may have one CPU.
OPTIONS = ["--oversubscribe"]


def test_results_by_rank():
    def work(first, second=0):
        import ddl

        ddl.init()
        print("here")
        print("open", end="")
        return ddl.rank(), ddl.allreduce(first + second)

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        results = ddl.run(work, args=(2,), kwargs={"second": 3}, np=3, options=OPTIONS)
    assert results == [(0, 15), (1, 15), (2, 15)]
    lines = out.getvalue().splitlines()
    assert sorted(lines) == sorted(f"[{rank}]<stdout>:{text}" for rank in range(3) for text in ("here", "open")), lines
    assert "ddl-result" not in out.getvalue()


def test_large_results():
    results = ddl.run(lambda: os.urandom(3_000_000), np=2, options=[*OPTIONS, "--framework", "none"])
    assert [len(result) for result in results] == [3_000_000] * 2


def test_failure():
    def fail():
        raise KeyError("what was not there")

    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        try:
            ddl.run(fail, np=1)
            raise AssertionError("no RunError was raised")
        except ddl.RunError as error:
            message, report, exit_code = str(error), error.report, error.exit_code
    assert exit_code == 1
    # The traceback is shown once, and the error has its last line.
    shown = err.getvalue() + message
    assert shown.count("Traceback") == 1, shown
    assert "exit code 1" in message and "\n  KeyError: 'what was not there'\n" in message, message
    assert "exited with 1" in message, message
    assert report.count("Traceback") == 2, report
    err = io.StringIO()
    with contextlib.redirect_stderr(err), raises(ddl.RunError, "exit code 2", "hint: "):
        ddl.run(fail, np=2, options=["--no-such-option"])
    with contextlib.redirect_stderr(err), raises(ddl.RunError, "exit code 2", "add --oversubscribe"):
        ddl.run(fail, np=100_000)
    with raises(ddl.RunError, "no result came from ranks [0]"):
        ddl.run(lambda: os._exit(0), np=1)


def test_interrupt():
    def wait(folder):
        import os
        import signal

        try:
            print("waiting", flush=True)
            while True:  # until ddlrun interrupts it; a signal just before pause() would not end that
                signal.sigtimedwait([], 0.1)
        finally:
            open(os.path.join(folder, os.environ["RANK"]), "w").close()

    class Interrupting(io.StringIO):
        def write(self, text):
            written = super().write(text)
            if "waiting" in text and self.getvalue().count("waiting") == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return written

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(Interrupting()), contextlib.redirect_stderr(io.StringIO()):
            with raises(KeyboardInterrupt):
                ddl.run(wait, args=(folder,), np=2, options=OPTIONS)
        assert sorted(os.listdir(folder)) == ["0", "1"]  # both ranks have cleaned up


def test_replaced_stdout():
    def work(how):
        import os
        import sys

        sys.stdout.write("before")
        if how == "object":
            sys.stdout = open(os.devnull, "w")
        elif how == "closed":
            sys.stdout.close()
        else:
            sys.stdout.flush()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return how

    for how in "object", "closed", "descriptor":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert ddl.run(work, args=(how,), np=2, options=OPTIONS) == [how] * 2
        assert sorted(out.getvalue().split()) == ["[0]<stdout>:before", "[1]<stdout>:before"], out.getvalue()


def test_others_write_meanwhile():
    def work():
        import os
        import subprocess

        subprocess.Popen(["sh", "-c", "for i in $(seq 2000); do echo noise; done"])
        return os.urandom(300_000)

    with contextlib.redirect_stdout(io.StringIO()):
        results = ddl.run(work, np=2, options=OPTIONS)
    assert [len(result) for result in results] == [300_000] * 2


def test_one_process_of_a_rank_joins():
    def work():
        import subprocess
        import sys

        # The other one has been refused when this one ends.
        child = "import sys, ddl; ddl.init(); print('joined', ddl.rank(), flush=True); sys.stdin.read()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        children = [subprocess.Popen([sys.executable, "-c", child], **pipes) for _ in range(2)]
        said = sorted(one.stdout.readline() for one in children)
        errors = "".join(one.communicate()[1] for one in children)
        # After it, in a shell, there may be another one.
        shell = subprocess.run(["sh", "-c", f'"{sys.executable}" -c "{child}"'], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True)
        return said, errors.count("was started with the variables of the same rank"), shell.stdout

    results = ddl.run(work, np=2, options=OPTIONS)
    assert results == [(["", f"joined {rank}\n"], 1, f"joined {rank}\n") for rank in range(2)], results


# Waits in two ranks, whose pids and whose ddlrun's are printed.
CALLER = """
import os, signal, ddl
def wait():
    print("pid", os.getpid(), flush=True)
    signal.pause()
ddl.run(wait, np=2, options=["--oversubscribe", "--kill-grace", "0.5", "--verbose"])
"""


def test_caller_is_killed():
    for end in signal.SIGKILL, signal.SIGTERM:
        caller = subprocess.Popen([sys.executable, "-c", CALLER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        ranks = [int(caller.stdout.readline().split()[-1]) for _ in range(2)]
        with open(f"/proc/{caller.pid}/task/{caller.pid}/children", encoding="ascii") as children:
            processes = [*ranks, *map(int, children.read().split())]
        ends = [os.pidfd_open(pid) for pid in processes]
        assert len(ends) == 3, processes
        caller.send_signal(end)
        assert caller.wait() == -end
        caller.stdout.close()
        for process in ends:
            assert select.select([process], [], [], 60)[0], f"{processes} were left"
            os.close(process)


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
