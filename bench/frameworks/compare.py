"""Compares how fast programs of frameworks train and start, by ddlrun and libddl and by others, in one run.

    compare.py steps [--rounds N] [--steps N]     a training step on two ranks, less that of one process
    compare.py keras [--rounds N] [--steps N]     the same of Keras's fit()
    compare.py zero [--rounds N] [--steps N]      a step of AdamW whose state two ranks divide, and its memory
    compare.py hooks [--rounds N] [--steps N]     what a gradient costs the thread of the backward pass, on two ranks
    compare.py start [--rounds N]                 two ranks that do nothing, started by each launcher
    compare.py restart [--rounds N]               from the end of one of two ranks until both are there again
    compare.py continue [--rounds N]              from the end of one of four ranks until the others make steps again
    compare.py commit [--rounds N]                how long the check for changes takes, and how fast a state is copied

All print a table; --json FILE writes all figures. scripts/frameworks makes the environments that they need (torch and
horovod; for zero, hooks and restart torch; for keras tensorflow, tensorflow-2.16 and horovod; for start also those of
the MPIs; for continue and commit horovod); what is not there is left out, and said.
ddlrun must be in PATH. In every round each way has its turn, so a figure of another way of the same round was taken
under the same conditions. The ratios are medians over the rounds.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BENCH = os.path.join(ROOT, "bench/frameworks")
PACKAGE = os.path.join(ROOT, "build/bench/package")  # the Python package ddl, for all environments
# By environment, the ways of step.py and of keras_step.py; each environment has the framework of its own.
WAYS = {
    "steps": {"torch": ["none", "c", "ddl.torch", "ddl.torch-views", "ddp-ddl", "ddp-gloo", "fsdp2-ddl",
                        "fsdp2-gloo"],
              "horovod": ["none", "ddl.torch", "ddl.torch-views", "ddp-gloo", "horovod"]},
    "keras": {"tensorflow": ["none", "ddl.keras", "strategy"], "tensorflow-2.16": ["none", "ddl.keras"],
              "horovod": ["none", "ddl.keras", "horovod", "strategy"]},
}
# The program of a step, and what ways are compared with.
STEPS = {"steps": ("step.py", ["ddp-gloo"]), "keras": ("keras_step.py", ["strategy", "horovod"])}
OPTIONS = {"horovod": ["--gloo"], "strategy": ["--framework", "tensorflow"]}  # of ddlrun
MODELS = ["resnet50", "conv"]


def environment(name):
    """The folder of an environment, or None, which is said."""
    found = subprocess.run([f"{ROOT}/scripts/frameworks", "--where", name], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"left out: {name}: {(found.stderr or found.stdout).strip()}", file=sys.stderr)
        return None
    return found.stdout.strip()


def run(words, path):
    """What a command prints, which must succeed, with a folder in front of PATH."""
    settings = {**os.environ, "PATH": f"{path}/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "PYTHONPATH": PACKAGE}
    done = subprocess.run(words, env=settings, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(f"compare.py: {' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def step_ms(place, program, way, model, steps):
    program = [f"{place}/bin/python", os.path.join(BENCH, program), way, model, str(steps)]
    if way != "none":
        program = ["ddlrun", "-np", "2", "--no-tag-output", *OPTIONS.get(way, [])] + program
    return json.loads(run(program, place).splitlines()[-1])


def compare_steps(options):
    subprocess.run([f"{ROOT}/tests/frameworks/package", ROOT, PACKAGE], check=True, stdout=subprocess.DEVNULL)
    results = {}
    program, all_others = STEPS[options.what]
    for name, ways in WAYS[options.what].items():
        place = environment(name)
        if place is None:
            continue
        for model in MODELS:
            rounds = []
            for number in range(options.rounds):
                turn = number % len(ways)
                turns = ways[turn:] + ways[:turn]
                rounds.append({way: step_ms(place, program, way, model, options.steps) for way in turns})
            about = rounds[0]["none"]
            beyond = {way: [one[way]["ms"] - one["none"]["ms"] for one in rounds] for way in ways if way != "none"}
            framework = about.get("framework") or f"PyTorch {about['torch']}"
            results[f"{name}/{model}"] = {"framework": framework, "rounds": rounds}
            print(f"\n{model}, {about['tensors']} tensors, {about['parameters']:,} parameters, {framework}, "
                  f"one process {statistics.median(one['none']['ms'] for one in rounds):.2f} ms\n")
            others = [other for other in all_others if other in ways]
            print("| 2 ranks | ms a step beyond one process | least to most |", *(f"of {one}'s |" for one in others))
            print("|---|---|---|" + "---|" * len(others))
            for way, ms in beyond.items():
                ratios = [statistics.median(a / b for a, b in zip(ms, beyond[other])) for other in others]
                print(f"| {way} | {statistics.median(ms):.1f} | {min(ms):.1f} to {max(ms):.1f} |",
                      *(f"{ratio:.2f} |" for ratio in ratios))
    return results


def compare_zero(options):
    subprocess.run([f"{ROOT}/tests/frameworks/package", ROOT, PACKAGE], check=True, stdout=subprocess.DEVNULL)
    place = environment("torch")
    if place is None:
        raise SystemExit("compare.py: zero needs the environment torch")
    ways = {way: (place, "zero_step.py", way, "resnet50", options.steps)
            for way in ["data-parallel", "ddl", "pytorch", "deepspeed"]}
    found = in_turns(options, ways, step_ms)
    print(f"AdamW, {found['ddl'][0]['parameters']:,} parameters, PyTorch {found['ddl'][0]['torch']}\n")
    print("| 2 ranks | ms a step | least to most | of data-parallel's | MB of a rank |\n|---|---|---|---|---|")
    for way, rounds in found.items():
        ms = [one["ms"] for one in rounds]
        ratio = statistics.median(a["ms"] / b["ms"] for a, b in zip(rounds, found["data-parallel"]))
        megabytes = statistics.median(one["bytes"] for one in rounds) / 1e6
        print(f"| {way} | {statistics.median(ms):.1f} | {min(ms):.1f} to {max(ms):.1f} | {ratio:.2f} |",
              f"{megabytes:.0f} |")
    return found


def hook_us(place, way, steps):
    program = [f"{place}/bin/python", os.path.join(BENCH, "hook.py"), way, str(steps)]
    return json.loads(run(["ddlrun", "-np", "2", "--no-tag-output", *program], place).splitlines()[-1])


def compare_hooks(options):
    subprocess.run([f"{ROOT}/tests/frameworks/package", ROOT, PACKAGE], check=True, stdout=subprocess.DEVNULL)
    place = environment("torch")
    if place is None:
        raise SystemExit("compare.py: hooks needs the environment torch")
    ways = {way: (place, way, options.steps) for way in ["c", "ddl.torch", "ddl.torch-views", "ddl.torch-sharded"]}
    found = in_turns(options, ways, hook_us)
    about = found["c"][0]
    print(f"{about['tensors']} tensors of ResNet-50, PyTorch {about['torch']}\n")
    print("| 2 ranks | us a tensor | least to most | of which the thread computes |\n|---|---|---|---|")
    for way, rounds in found.items():
        us, cpu = ([one[name] for one in rounds] for name in ("us", "cpu_us"))
        print(f"| {way} | {statistics.median(us):.1f} | {min(us):.1f} to {max(us):.1f} | {statistics.median(cpu):.1f} |")
    return found


def launchers():
    """By what a row is called, the command that starts two ranks of `true`, and the folder of its environment."""
    true = shutil.which("true")
    found = {"ddlrun": (["ddlrun", "-np", "2", true], "/usr")}
    for name, words in {
        "mpich-5.0": ["mpiexec", "-n", "2", true],
        "openmpi-5.0": ["mpiexec", "-n", "2", "--oversubscribe", "--allow-run-as-root", true],
        "openmpi-4.1": ["mpiexec", "-n", "2", "--oversubscribe", "--allow-run-as-root", true],
        "impi-2021": ["mpiexec", "-n", "2", true],
        "torch": ["torchrun", "--nproc-per-node", "2", "--no-python", true],
        "horovod": ["horovodrun", "--gloo", "-np", "2", true],
    }.items():
        place = environment(name)
        if place is not None:
            found[f"{words[0]} of {name}"] = ([f"{place}/bin/{words[0]}"] + words[1:], place)
    return found


def in_turns(options, ways, measure):
    """What measure(*way) gives in each round, by the name of the way. A round before them warms up."""
    found = {name: [] for name in ways}
    for number in range(-1, options.rounds):
        for name, way in ways.items():
            one = measure(*way)
            if number >= 0:
                found[name].append(one)
    return found


def print_ms(ms, described=""):
    """A row for each way, with its ratio to ddlrun's. described: what the rows have in common. The rows, by name."""
    rows = {name + (described and ", ") + described: found for name, found in ms.items()}
    for row, found in rows.items():
        ratio = statistics.median(a / b for a, b in zip(found, ms["ddlrun"]))
        print(f"| {row} | {statistics.median(found):.0f} | {min(found):.0f} to {max(found):.0f} | {ratio:.2f} |")
    return rows


def start_ms(words, place):
    begin = time.perf_counter()
    run(words, place)
    return 1000 * (time.perf_counter() - begin)


def compare_start(options):
    ms = in_turns(options, launchers(), start_ms)
    print("| two ranks of `true` | ms | least to most | of ddlrun's |\n|---|---|---|---|")
    return print_ms(ms)


def restart_ms(words, place, program):
    """From the end of rank 1 until the last rank of the next generation has imported what the program needs."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["READY"] = os.path.join(folder, "ready")
        os.mkfifo(os.environ["READY"])
        printed = run([*words, *program], place)
    times = {"ended": [], "again": []}
    for word, when in re.findall(r"(ended|again) ([0-9.]+)", printed):
        times[word].append(float(when))
    if (len(times["ended"]), len(times["again"])) != (1, 2):
        raise SystemExit(f"compare.py: {' '.join(words)} did not start the ranks again:\n{printed}")
    return 1000 * (max(times["again"]) - times["ended"][0])


def compare_restart(options):
    place = environment("torch")
    if place is None:
        raise SystemExit("compare.py: restart needs the environment torch")
    rank = [f"{place}/bin/python", os.path.join(BENCH, "restarted.py")]
    commands = {"ddlrun": ["ddlrun", "-np", "2", "--max-restarts", "1"],
                "torchrun": [f"{place}/bin/torchrun", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1",
                             "--no-python"]}
    times = {}
    print("| two ranks that start again | ms | least to most | of ddlrun's |\n|---|---|---|---|")
    for needs, described in [[], "Python alone"], [["torch"], "the program imports torch"]:
        ways = {name: (words, place, rank + needs) for name, words in commands.items()}
        times |= print_ms(in_turns(options, ways, restart_ms), described)
    return times


def continue_ms(words, place):
    """From the end of a rank until the last of the others has made its next step."""
    printed = run(words, place)
    ended, again = ([float(when) for when in re.findall(word + r" ([0-9.]+)", printed)] for word in ("ended", "again"))
    if len(ended) != 1 or not again:
        raise SystemExit(f"compare.py: {' '.join(words)} did not go on:\n{printed}")
    return 1000 * (max(again) - ended[0])


def compare_continue(options):
    place = environment("horovod")
    if place is None:
        raise SystemExit("compare.py: continue needs the environment horovod")
    program = [f"{place}/bin/python", os.path.join(BENCH, "goes_on.py")]
    hosts = ["-np", "4", "--min-np", "1", "-H", "localhost:2,127.0.0.1:2"]
    commands = {"ddlrun": (["ddlrun", *hosts], "ddl"),
                "horovodrun": ([f"{place}/bin/horovodrun", "--gloo", *hosts], "horovod")}
    times = {}
    print("| ranks that go on when one of four is killed | ms | least to most | of ddlrun's |\n|---|---|---|---|")
    for megabytes in [1, 205]:
        ways = {name: ([*words, *program, package, str(megabytes)], place)
                for name, (words, package) in commands.items()}
        times |= print_ms(in_turns(options, ways, continue_ms), f"a state of {megabytes} MB")
    return times


def check_and_commit(words, place):
    """Microseconds of a check, and GB/s of a commit."""
    printed = run(words, place)
    numbers = re.search(r"check ([0-9.e+-]+) commit ([0-9.e+-]+)", printed)
    if numbers is None:
        raise SystemExit(f"compare.py: {' '.join(words)} has not made its commits:\n{printed}")
    return [float(one) for one in numbers.groups()]


def compare_commit(options):
    place = environment("horovod")
    if place is None:
        raise SystemExit("compare.py: commit needs the environment horovod")
    program = [f"{place}/bin/python", os.path.join(BENCH, "commit.py")]
    two = ["-np", "2", "--min-np", "2", "-H", "localhost:1,127.0.0.1:1"]
    ways = {"ddlrun, one host": (["ddlrun", *two[:4], "-H", "localhost:2", *program, "ddl"], place),
            "ddlrun, two names": (["ddlrun", *two, *program, "ddl"], place),
            "horovodrun, two names": ([f"{place}/bin/horovodrun", "--gloo", *two, *program, "horovod"], place)}
    found = in_turns(options, ways, check_and_commit)
    print("| two ranks | check, us | commit of 205 MB, GB/s |\n|---|---|---|")
    for name, rounds in found.items():
        check, commit = (statistics.median(column) for column in zip(*rounds))
        print(f"| {name} | {check:.1f} | {commit:.2f} |")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["steps", "keras", "zero", "hooks", "start", "restart", "continue", "commit"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20, help="of each way in a round")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if min(options.rounds, options.steps) < 1:
        parser.error("--rounds and --steps are above zero")
    if shutil.which("ddlrun") is None:
        parser.error("ddlrun is not in PATH; scripts/quickstart builds it and prints the line that puts it there")
    ways = {"start": compare_start, "restart": compare_restart, "continue": compare_continue,
            "commit": compare_commit, "zero": compare_zero, "hooks": compare_hooks}
    results = ways.get(options.what, compare_steps)(options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
