"""How long ranks that go on are held up: by a rank that is killed, by a host whose agent is killed, by a rank that joins.

    recovery.py [--rounds N] [--megabytes N,N] [--json FILE]

Ranks are on names of this machine that count as hosts: two of each on two, and four of each on four. They make small
allreduces, and their state is an array of NumPy. The table has medians over the rounds of

- noticed: from the kill until the last of the others has an error
- going on: from the kill until the last of the others has made a step again
- joining: the longest time between two steps of a rank while a process that is ready becomes a rank

The last row is of two hosts of a cluster (tests/cluster/cluster, which needs root), of which one is cut off: no
connection of its closes. There the time begins before the command that cuts it off.

ddlrun must be in PATH, and a Python with ddl and NumPy run this.
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

LAYOUTS = {"2 names x 2": ["localhost:2", "127.0.0.1:2"], "4 names x 4": [f"127.0.0.{i}:4" for i in range(1, 5)]}
STEPS_BEFORE = 35  # commits are after every ten
KILLED = ["rank", "agent"]
SILENT = "host"
CLUSTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/cluster/cluster")


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def run_as_rank(killed, megabytes, ended):
    import numpy

    import ddl
    from ddl import elastic

    last_step = 0.0
    first_size = None

    @elastic.run
    def train(state):
        nonlocal last_step, first_size
        first_size = first_size or ddl.size()
        joined = elastic.generation() > 0 and ddl.size() == first_size
        numbers = numpy.zeros(1000)
        for step in range(STEPS_BEFORE if joined else 1_000_000):
            try:
                ddl.allreduce(numbers, out=numbers)
                now = time.time()
                state.step += 1
                if step % 10 == 9:
                    state.commit()
            except ddl.PeerLost:
                print(f"noticed {time.time()}\n", end="", flush=True)
                raise
            if step == 0 and last_step:
                print(f"{'joined' if joined else 'again'} {now} {now - last_step}\n", end="", flush=True)
            last_step = now
            if killed == SILENT and step == STEPS_BEFORE:
                if elastic.generation() > 0:
                    return
                print("steps\n", end="", flush=True)
            elif elastic.generation() == 0 and step == STEPS_BEFORE and ddl.rank() == ddl.size() - 1:
                with open(ended, "w", encoding="utf-8") as file:  # an agent takes the last output with it
                    file.write(str(time.time()))
                os.kill(os.getpid() if killed == "rank" else parent_of(os.getppid()), signal.SIGKILL)

    ddl.init()
    train(elastic.ObjectState(step=0, weights=numpy.zeros(int(megabytes * 1e6 / 8))))


def measure(hosts, killed, megabytes):
    """Milliseconds of the three."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["ddlrun", "--timeout", "120", "--min-np", "1", "-H", ",".join(hosts), "--elastic-settle", "0.5",
                 "--blacklist-cooldown-range", "1", "1", sys.executable, os.path.abspath(__file__), "--rank", killed,
                 "--megabytes", str(megabytes), "--ended", f"{folder}/ended"]
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        times = {word: [float(one) for one in re.findall(word + r" ([0-9.]+)", done.stdout)]
                 for word in ("noticed", "again")}
        pauses = [float(one) for one in re.findall(r"joined [0-9.]+ ([0-9.]+)", done.stdout)]
        if done.returncode != 0 or not (times["noticed"] and times["again"] and pauses):
            raise SystemExit(f"recovery.py: {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        with open(f"{folder}/ended", encoding="utf-8") as file:
            ended = float(file.read())
    return [1000 * one for one in (max(times["noticed"]) - ended, max(times["again"]) - ended, max(pauses))]


def measure_silence(cluster, megabytes):
    """Milliseconds of the first two."""
    words = [*cluster, "exec", "head", shutil.which("ddlrun"), "--timeout", "120", "--min-np", "1", "-H",
             "node1:2,node2:2", "--blacklist-cooldown-range", "3600", "3600", sys.executable, os.path.abspath(__file__),
             "--rank", SILENT, "--megabytes", megabytes]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as job:
        try:
            for _ in range(4):
                while "steps" not in job.stdout.readline():
                    if job.poll() is not None:
                        raise SystemExit(f"recovery.py: {' '.join(words)} ended with {job.returncode}")
            begin = time.time()
            subprocess.run([*cluster, "partition", "node2"], check=True)
            printed = job.stdout.read()
        finally:
            job.kill()
    subprocess.run([*cluster, "heal", "node2"], check=True)
    times = [[float(one) for one in re.findall(word + r" ([0-9.]+)", printed)] for word in ("noticed", "again")]
    # What the lost host has printed does not come.
    if [len(one) for one in times] != [2, 2]:
        raise SystemExit(f"recovery.py: {' '.join(words)}: {printed}")
    return [1000 * (max(one) - begin) for one in times]


def silence(rounds, megabytes):
    """The measurements; none where no cluster can be made."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = [CLUSTER, "--state", f"{folder}/state"]
        trees = [os.path.dirname(os.path.dirname(one)) for one in (shutil.which("ddlrun"), sys.executable)]
        up = [*cluster, "up", "2", *(word for tree in trees for word in ("--tree", tree))]
        if subprocess.run(up, stdout=subprocess.DEVNULL).returncode != 0:
            return []
        try:
            return [measure_silence(cluster, megabytes) for _ in range(rounds)]
        finally:
            subprocess.run([*cluster, "down"], check=True, stdout=subprocess.DEVNULL)


def print_row(layout, killed, megabytes, rounds):
    cells = [f"{statistics.median(one):.0f} ({min(one):.0f} to {max(one):.0f})" for one in zip(*rounds)]
    print(f"| {layout} | {killed} | {megabytes} | {' | '.join(cells + ['-'] * (3 - len(cells)))} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", default="1,205", help="of the state")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rank", choices=[*KILLED, SILENT], help=argparse.SUPPRESS)
    parser.add_argument("--ended", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return run_as_rank(options.rank, float(options.megabytes), options.ended)
    results = {}
    print("| ranks | killed | state, MB | noticed, ms | going on, ms | joining, ms |\n|---|---|---|---|---|---|")
    for megabytes in options.megabytes.split(","):
        for layout, hosts in LAYOUTS.items():
            for killed in KILLED:
                rounds = [measure(hosts, killed, megabytes) for _ in range(options.rounds)]
                print_row(layout, killed, megabytes, rounds)
                results[f"{layout}, {killed}, {megabytes}"] = rounds
    megabytes = options.megabytes.split(",")[0]
    rounds = silence(options.rounds, megabytes)
    if rounds:
        print_row("2 hosts x 2", "a host is cut off", megabytes, rounds)
        results["silence"] = rounds
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
