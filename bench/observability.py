"""What it takes to see a job: its page, and its metrics.

    observability.py BUILD [--ranks N] [--scrapes N] [--json FILE]

BUILD is the folder of a build, with bin/ddlrun. The table has a line for each aim, with what was found:

- page: --report-from draws the pages of jobs of 64 and 10,000 ranks, which are copies of the ranks of a real job that
  use libddl; each of 64 has waited for all others
- scrape: --metrics asks a job of N ranks (256) that sleep; medians
- collector: the CPU time of the job's ddlrun and its agent for one such question, as a share of the 15 s between two,
  and by how much more memory they then have
"""
import argparse
import copy
import json
import os
import statistics
import subprocess
import tempfile
import time

INTERVAL = 15.0  # s, of --metrics-interval
TICK = os.sysconf("SC_CLK_TCK")


def timed(command):
    """Seconds of the clock, and what it printed."""
    begin = time.monotonic()
    printed = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    return time.monotonic() - begin, printed


def larger(record, ranks):
    """The record of a job of so many ranks. Of at most 64 of them, each has waited for all others."""
    made = copy.deepcopy(record)
    ends = []
    for rank in range(ranks):
        one = copy.deepcopy(record["ranks"][rank % len(record["ranks"])])
        one["rank"] = rank
        others = [other for other in range(ranks) if other != rank] if ranks <= 64 else [(rank + 1) % ranks]
        one["awaited"] = [{"rank": other, "seconds": 0.001} for other in others]
        ends.append(one)
    made["ranks"], made["num_ranks"] = ends, ranks
    return made


def pages(ddlrun, program, folder):
    subprocess.run([ddlrun, "-np", "2", "--oversubscribe", "--report-json", f"{folder}/2.json", *program], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    with open(f"{folder}/2.json", encoding="utf-8") as file:
        record = json.load(file)
    found = []
    for ranks, most_seconds, most_bytes in ((64, 1.0, 300e3), (10_000, 5.0, 2e6)):
        with open(f"{folder}/{ranks}.json", "w", encoding="utf-8") as file:
            json.dump(larger(record, ranks), file)
        runs = [timed([ddlrun, "--report-from", f"{folder}/{ranks}.json"]) for _ in range(5)]
        found.append((f"page of {ranks} ranks, s", statistics.median(run[0] for run in runs), most_seconds))
        found.append((f"page of {ranks} ranks, KB", len(runs[0][1]) / 1e3, most_bytes / 1e3))
    return found


def used(pids):
    """CPU seconds and resident bytes of these processes together."""
    cpu = resident = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        cpu += (int(fields[11]) + int(fields[12])) / TICK
        resident += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return cpu, resident


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(one) for one in file.read().split()]


def metrics(ddlrun, ranks, scrapes, folder):
    begun = f"{folder}/begun"
    # The agent is a part of ddlrun, and its child if the job is elastic.
    with subprocess.Popen([ddlrun, "-np", str(ranks), "--oversubscribe", "--bind-to", "none", "--kill-grace", "0", "sh",
                           "-c", f"echo >> {begun}; exec sleep 3600"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        deadline = time.monotonic() + 120
        while not os.path.exists(begun) or os.path.getsize(begun) < ranks:
            if time.monotonic() > deadline:
                raise SystemExit("observability.py: the ranks have not begun within 120 s")
            time.sleep(0.05)
        ask = [ddlrun, "--metrics", str(job.pid)]
        text = timed(ask)[1]
        watching = [job.pid, *children(job.pid)]
        cpu, resident = used(watching)
        times = [timed(ask)[0] for _ in range(scrapes)]
        more_cpu, more_resident = (now - before for now, before in zip(used(watching), (cpu, resident)))
        job.terminate()
    series = sum(1 for line in text.splitlines() if not line.startswith(b"#"))
    return [(f"scrape of {ranks} ranks, ms", 1e3 * statistics.median(times), 50),
            (f"scrape of {ranks} ranks, KB", len(text) / 1e3, 300),
            (f"scrape of {ranks} ranks, series", series, 5000),
            ("collector, % of a core", 100 * more_cpu / scrapes / INTERVAL, 0.1),
            ("collector, MB", more_resident / 1e6, 1.0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ranks", type=int, default=256)
    parser.add_argument("--scrapes", type=int, default=101)
    parser.add_argument("--json")
    options = parser.parse_args()
    ddlrun = f"{options.build}/bin/ddlrun"
    program = [f"{options.build}/bin/function_approximation", "--epochs", "50"]
    with tempfile.TemporaryDirectory() as folder:
        found = pages(ddlrun, program, folder) + metrics(ddlrun, options.ranks, options.scrapes, folder)
    print(f"{'':34} {'found':>10} {'at most':>10}")
    for name, value, most in found:
        print(f"{name:34} {value:10.3g} {most:10.4g}  {'met' if value <= most else 'missed'}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([{"name": name, "found": value, "most": most} for name, value, most in found], file)


if __name__ == "__main__":
    main()
