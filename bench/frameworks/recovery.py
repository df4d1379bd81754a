"""How long ranks that go on are held up: by a rank that is killed, by a host whose agent is killed, by a rank that joins.

    recovery.py [--rounds N] [--megabytes N,N] [--json FILE]

Ranks are on names of this machine that count as hosts: two of each on two, and four of each on four. They make small
allreduces, and their state is an array of NumPy. The table has medians over the rounds of

- noticed: from the kill until the last of the others has an error
- going on: from the kill until the last of the others has made a step again
- joining: the longest time between two steps of a rank while a process that is ready becomes a rank

ddlrun must be in PATH, and a Python with ddl and NumPy run this.
"""
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

LAYOUTS = {"2 names x 2": ["localhost:2", "127.0.0.1:2"], "4 names x 4": [f"127.0.0.{i}:4" for i in range(1, 5)]}
STEPS_BEFORE = 35  # commits are after every ten
KILLED = ["rank", "agent"]


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
            if elastic.generation() == 0 and step == STEPS_BEFORE and ddl.rank() == ddl.size() - 1:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", default="1,205", help="of the state")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rank", choices=KILLED, help=argparse.SUPPRESS)
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
                cells = (f"{statistics.median(one):.0f} ({min(one):.0f} to {max(one):.0f})" for one in zip(*rounds))
                print(f"| {layout} | {killed} | {megabytes} | {' | '.join(cells)} |", flush=True)
                results[f"{layout}, {killed}, {megabytes}"] = rounds
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
