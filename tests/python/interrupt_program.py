"""^C while ranks wait inside ddl. Without an argument this program is no rank, and starts ddlrun; with one, it is a
rank: rank 0 waits there for rank 1, which does something else."""
import os
import signal
import subprocess
import sys
import time

from harness import run

WHERE = {"init": "ddl_init: 1 of 2", "barrier": "barrier #1: 1 of 2", "tensor": 'tensor "gradient": 1 of 2'}


def wait(where):
    import ddl

    if where != "init":
        ddl.init()
    if os.environ["RANK"] == "1":
        time.sleep(1000)
    elif where == "init":
        ddl.init()
    elif where == "barrier":
        ddl.barrier()
    else:
        array = bytearray(8)
        ddl.allreduce_async(array, "gradient", out=array, dtype="float32").wait()


def rank(where):
    try:
        print("begins", flush=True)
        wait(where)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
    finally:
        print("finally", flush=True)


def interrupted(where, *options):
    """What ddlrun and its ranks write, if it gets SIGINT once both have begun and it says that rank 0 waits there."""
    command = ["ddlrun", "-np", "2", "--oversubscribe", "--stall-check-warning-time-seconds", "0.1", *options]
    job = subprocess.Popen(
        [*command, sys.executable, __file__, where],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    text = ""
    for line in job.stdout:
        text += line
        if WHERE[where] in text and text.count(">:begins\n") == 2:
            break
    job.send_signal(signal.SIGINT)
    text += job.communicate()[0]
    assert job.returncode == 130, text
    return text


def test_every_rank_is_interrupted():
    for where in WHERE:
        text = interrupted(where, "--kill-grace", "1000")
        for what in ("interrupted", "finally"):
            for number in (0, 1):
                assert f"[{number}]<stdout>:{what}\n" in text, text
        assert "ddlrun: ended by SIGINT" in text and "ranks 0, 1 were ended with SIGINT" in text, text


if __name__ == "__main__":
    if len(sys.argv) > 1:
        rank(sys.argv[1])
    else:
        run(globals(), 0)
