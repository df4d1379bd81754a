"""How long importing takes: PyTorch alone, and the package ddl with init(). Needs ddlrun in PATH.

    import_time.py [PAIRS]    each measurement is a process of its own, in turn
"""
import statistics
import subprocess
import sys

WAYS = {
    "import torch": "import torch",
    "import ddl.torch, init": "import ddl.torch as hvd; hvd.init()",
    "import ddl, init": "import ddl; ddl.init()",
}


def seconds(statements):
    program = f"import time; begin = time.perf_counter(); {statements}; print(time.perf_counter() - begin)"
    words = ["ddlrun", "-np", "1", "--no-tag-output", sys.executable, "-c", program]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    times = {way: [] for way in WAYS}
    for _ in range(pairs):
        for way, statements in WAYS.items():
            times[way].append(seconds(statements))
    alone = statistics.median(times["import torch"])
    for way, measured in times.items():
        median = statistics.median(measured)
        print(f"{way:24} {median:.3f} s ({min(measured):.3f} to {max(measured):.3f}), {median / alone:.2f} of torch")


main()
