"""Compares two builds, such as this one and that of an earlier commit: what an ordinary job of two ranks takes.

    builds.py THIS OTHER [--rounds N] [--json FILE]

THIS and OTHER are folders of release builds, with bin/ddlrun and what bin/ddl-bench needs. The builds run in turn, each
first in every second round. The table has medians over the rounds, and the ratio of THIS to OTHER, pair by pair:

- start: the time of `ddlrun -np 2 true`, of the clock and of processors
- join: the same of ranks that call ddl_init
- memory: the peaks of ddlrun, its agent and its spawner, together
- allreduce: the time of a call, by ddl-bench, which tells apart how far the CPUs are from each other
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = {8: "8", 65536: "64K", 16777216: "16M"}
# Of a rank: its parents are the spawner, the agent and ddlrun.
PEAKS = """p=$PPID; for i in 1 2 3; do
  awk '/^VmHWM/ { print "peak", $2 }' /proc/$p/status; p=$(awk '/^PPid/ { print $2 }' /proc/$p/status); done"""


def time_of(command):
    """Milliseconds of the clock and of processors."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if status != 0:
        raise SystemExit(f"builds.py: {' '.join(command)} ended with {child.returncode}")
    return 1000 * seconds, 1000 * (usage.ru_utime + usage.ru_stime)


def medians_of(build, words, runs):
    return [statistics.median(one) for one in zip(*(time_of([f"{build}/bin/ddlrun", *words]) for _ in range(runs)))]


def measure(build, runs):
    """By row."""
    found = {}
    for name, words in (("start", ["-np", "2", "true"]), ("join", ["-np", "2", f"{build}/bin/init_ddl"])):
        for what, value in zip(("ms", "ms of processors"), medians_of(build, words, runs)):
            found[f"{name}, {what}"] = value
    told = subprocess.run([f"{build}/bin/ddlrun", "-np", "1", "sh", "-c", PEAKS], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    found["memory, MB"] = sum(int(line.split()[1]) for line in told.splitlines()) / 1000
    with tempfile.TemporaryDirectory() as folder:
        command = [f"{build}/bin/ddl-bench", "allreduce", "--np", "2", "--blocks", "1", "--entrants", "ddl", "--sizes",
                   ",".join(SIZES.values()), "--json", f"{folder}/json"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        with open(f"{folder}/json", encoding="utf-8") as file:
            for case in json.load(file)["cases"]:
                if case["figures"]:
                    name = f"allreduce of {SIZES[case['bytes']]}, CPUs {case['distance']}, us"
                    found[name] = 1e6 * case["figures"][0]["p50_seconds"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("this")
    parser.add_argument("other")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=10, help="of ddlrun, in each round")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    builds = [os.path.abspath(options.this), os.path.abspath(options.other)]
    pairs = []
    for number in range(options.rounds):
        order = builds if number % 2 == 0 else builds[::-1]
        both = {build: measure(build, options.runs) for build in order}
        pairs.append([both[build] for build in builds])
    print("| | this build | the other | ratio |\n|---|---|---|---|")
    for row in dict.fromkeys(row for pair in pairs for row in pair[0]):
        here, there = ([pair[i][row] for pair in pairs if row in pair[0] and row in pair[1]] for i in (0, 1))
        if not here:
            continue
        ratios = [a / b for a, b in zip(here, there)]
        print(f"| {row} | {statistics.median(here):.3g} | {statistics.median(there):.3g} | "
              f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) |", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(pairs, file)


if __name__ == "__main__":
    sys.exit(main())
