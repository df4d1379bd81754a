"""Compares what elastic launchers do when one of four ranks is killed: by ddlrun, horovodrun and torchrun, in one run.

    elastic.py [--rounds N] [--deadline SECONDS] [--json FILE] [WAY...]

Ranks are on two names of this machine, localhost and 127.0.0.1, two on each; of torchrun on one, or under two agents.
All of them run counted.py: those that go on in the environment horovod, those that start again in torch, which
scripts/frameworks makes. What is not there is left out, and said. ddlrun must be in PATH. The table has, for each way,
medians over the rounds:

- seconds from the kill until the last of the ranks that go on has made a training step
- ranks that go on
- samples of the two epochs that no commit has, and those that it has more than once
- processes of the job that were left when its launcher had ended

A job that has not ended at the deadline is counted as hung, and is killed.
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

from compare import BENCH, PACKAGE, ROOT, environment

SAMPLES, EPOCHS = 1000, 2  # of counted.py
HOSTS = ["-np", "4", "--min-np", "2", "-H", "localhost:2,127.0.0.1:2"]
MARK = "DDL_BENCH_ELASTIC"
# Otherwise ranks of PyTorch 2.15 that start again read the addresses of the earlier ones in the store of torchrun, and
# no start succeeds.
TORCHRUN = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def ways(horovod, torch):
    """By what a row is called, the commands of the launchers, the argument of counted.py, and the environment."""
    # Older versions know options with underscores only.
    agent, nodes = ["--max_restarts", "3", "--no_python"], ["--nnodes", "1:2", "--nproc_per_node", "2"]
    server = ["--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:{port}"]
    return {
        "ddlrun": ([["ddlrun", *HOSTS]], "ddl", horovod),
        "ddlrun --gloo": ([["ddlrun", *HOSTS, "--gloo"]], "horovod", horovod),
        "horovodrun --gloo": ([[f"{horovod}/bin/horovodrun", "--gloo", *HOSTS]], "horovod", horovod),
        "ddlrun --elastic restart": ([["ddlrun", "--elastic", "restart", *HOSTS]], "ddp", torch),
        "torchrun --nproc-per-node 4": ([[f"{torch}/bin/torchrun", "--standalone", "--nproc_per_node", "4", *agent]],
                                        "ddp", torch),
        "torchrun --nnodes 1:2": ([[f"{torch}/bin/torchrun", *nodes, *server, *agent]] * 2, "ddp", torch),
    }


def left_over(mark):
    """The processes that have inherited the mark, but for this one."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                marked = f"{MARK}={mark}".encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                zombie = file.read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if marked and not zombie:
            found.append(int(pid))
    return found


def trained(folder):
    """How often each sample of each epoch is in a commit."""
    times = {}
    for name in os.listdir(folder):
        if name.startswith("trained."):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for line in file:
                    times[line] = times.get(line, 0) + 1
    return times


def measure(commands, way, place, deadline):
    mark, port = uuid.uuid4().hex, 29600 + os.getpid() % 1000
    with tempfile.TemporaryDirectory() as folder:
        rank = [f"{place}/bin/python", os.path.join(BENCH, "counted.py"), way, folder]
        settings = {**os.environ, **TORCHRUN, MARK: mark, "PATH": f"{place}/bin:{os.environ['PATH']}",
                    "OMP_NUM_THREADS": "1", "PYTHONPATH": PACKAGE}
        with open(os.path.join(folder, "out"), "w+", encoding="utf-8") as out:
            launchers = [subprocess.Popen([word.format(port=port) for word in command] + rank, env=settings, stdout=out,
                                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) for command in commands]
            end = time.monotonic() + deadline
            hung = False
            for launcher in launchers:
                try:
                    launcher.wait(max(0.1, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    hung = True
            left = [] if hung else left_over(mark)
            for pid in left_over(mark):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for launcher in launchers:
                launcher.wait()
            out.seek(0)
            printed = out.read()
        again = [float(one) for one in re.findall(r"again ([0-9.]+)", printed)]
        times = trained(folder)
        ended = os.path.join(folder, "ended")
        if not os.path.exists(ended):
            raise SystemExit(f"elastic.py: {' '.join(commands[0])} killed no rank:\n{printed}")
        with open(ended, encoding="utf-8") as file:
            killed = float(file.read())
    succeeded = not hung and all(launcher.returncode == 0 for launcher in launchers)
    if not succeeded:
        print(f"{' '.join(commands[0])}: {'hung' if hung else 'failed'}:\n{printed[-2000:]}", file=sys.stderr)
    return {"seconds": max(again) - killed if again else None, "ranks": len(again), "hung": hung,
            "succeeded": succeeded, "lost": SAMPLES * EPOCHS - len(times), "repeated": sum(times.values()) - len(times),
            "left": len(left)}


def print_row(name, rounds):
    seconds = [one["seconds"] for one in rounds if one["seconds"] is not None]
    middle = f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})" if seconds else "never"
    numbers = (f"{statistics.median(one[key] for one in rounds):.0f}" for key in ("ranks", "lost", "repeated"))
    hung, failed = (sum(one[key] for one in rounds) for key in ("hung", "failed"))
    end = f"{hung} hung, {failed} failed" if hung or failed else "all end well"
    print(f"| {name} | {middle} | {' | '.join(numbers)} | {max(one['left'] for one in rounds)} | {end} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", nargs="*", help="rows of the table; all if none is given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deadline", type=float, default=150, metavar="SECONDS", help="of a job")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds is above zero")
    if shutil.which("ddlrun") is None:
        parser.error("ddlrun is not in PATH; scripts/quickstart builds it and prints the line that puts it there")
    known = ways(environment("horovod"), environment("torch"))
    if not set(options.way) <= set(known):
        parser.error(f"the ways are {', '.join(known)}")
    chosen = {name: way for name, way in known.items() if way[2] and (not options.way or name in options.way)}
    subprocess.run([f"{ROOT}/tests/frameworks/package", ROOT, PACKAGE], check=True, stdout=subprocess.DEVNULL)
    found = {name: [] for name in chosen}
    for _ in range(options.rounds):
        for name, (commands, way, place) in chosen.items():
            one = measure(commands, way, place, options.deadline)
            one["failed"] = not one["succeeded"] and not one["hung"]
            found[name].append(one)
    print("| one of four ranks is killed | s until all that go on have made a step | ranks that go on | samples lost | "
          "repeated | processes left | jobs |\n|---|---|---|---|---|---|---|")
    for name, rounds in found.items():
        print_row(name, rounds)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
