"""Runs an example as a person does, and checks what it says. Needs ddlrun in PATH.

    examples_program.py FOLDER EXAMPLE
"""
import gzip
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

FOLDER, EXAMPLE = Path(sys.argv[1]), sys.argv[2]
sys.dont_write_bytecode = True  # into the sources
sys.path.insert(0, str(FOLDER))


def start(arguments, ranks=None):
    launcher = ["ddlrun", "-np", str(ranks), "--oversubscribe", "--timeout", "60"] if ranks else []
    words = [*launcher, sys.executable, str(FOLDER / f"{EXAMPLE}.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100)
    print(*words, f"\n{ended.stdout}{ended.stderr}", flush=True)
    return ended


def run(*arguments, ranks=None):
    """What the example prints. ranks: None: as one process, without ddlrun."""
    ended = start(arguments, ranks)
    assert ended.returncode == 0, f"exit code {ended.returncode}"
    return ended.stdout


def fails(*arguments, says, ranks=None):
    """Ends the example with an error that is meant for a person."""
    ended = start(arguments, ranks)
    assert ended.returncode != 0 and "Traceback" not in ended.stderr, f"exit code {ended.returncode}"
    assert says in ended.stderr, f"{says!r} is not said"


def number(pattern, text):
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in: {text}"
    return float(found.group(1))


def check_picture(path, *labels):
    texts = [text.text for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert set(labels) <= set(texts), texts


def pinn():
    few = ["--epochs", 1000]
    alone = number(r"1 ranks, data-parallel: largest error (\S+),", run(*few))
    shared = number(r"2 ranks, data-parallel: largest error (\S+),", run(*few, "--plot", "u.svg", ranks=2))
    assert shared < 0.01 and abs(shared - alone) < 1e-5
    ensemble = run(*few, "--form", "ensemble", ranks=2)
    assert number(r"2 ranks, ensemble: largest error (\S+),", ensemble) < 0.01
    assert number(r"mean spread (\S+)", ensemble) > 0
    assert number(r"2 ranks, problems: largest error of all (\S+)", run(*few, "--form", "problems", ranks=2)) < 0.01
    fails("--points", 121, says="--points 121 are not the same number for each of 2 ranks", ranks=2)
    if importlib.util.find_spec("matplotlib") is None:
        check_picture("u.svg", "network", "exact", "x", "u - exact u")
        fails("--plot", "u.png", says="u.png does not end with .svg")


def write_idx(path, magic, values):
    data = struct.pack(f">{1 + values.ndim}I", magic, *values.shape) + values.astype("uint8").tobytes()
    Path(path).write_bytes(gzip.compress(data) if path.endswith(".gz") else data)


def mnist():
    from digits import BadFile, draw_digits, read_digits

    train, test = draw_digits(4000, seed=1), draw_digits(2000, seed=2)
    write_idx("train-images-idx3-ubyte.gz", 0x803, train[0])
    write_idx("train-labels-idx1-ubyte", 0x801, train[1])
    write_idx("t10k-images-idx3-ubyte", 0x803, test[0])
    write_idx("t10k-labels-idx1-ubyte.gz", 0x801, test[1])
    drawn = run("--samples", 4000, "--batch", 16, "--epochs", 2, "--checkpoint", "c", ranks=2)
    read = run("--data", ".", "--batch", 16, "--epochs", 2, ranks=2)
    assert drawn == read
    assert number(r"2 ranks: accuracy (\S+) over 2000 images", read) > 0.9
    # Another number of ranks goes on from the checkpoint.
    more = run("--data", ".", "--epochs", 3, "--checkpoint", "c")
    assert "epoch 2" not in more and number(r"1 ranks: accuracy (\S+)", more) > 0.95

    fails("--data", "nowhere", says="there is no directory nowhere", ranks=2)
    fails("--samples", 20, says="20 samples are fewer than a batch of 32 for each of 1 ranks")
    whole = Path("t10k-labels-idx1-ubyte.gz").read_bytes()
    for broken, says in (
        (whole[:-9], "t10k-labels-idx1-ubyte.gz cannot be read: Compressed file ended before"),
        (b"no file of MNIST", "is no IDX file of 1 dimensions: it begins with 0x6e6f2066, not 0x801"),
        (b"\0\0", "it has 2 bytes, and its header alone would have 8"),
        (struct.pack(">2I", 0x801, 2000) + bytes(1999), "has 2007 bytes, and 2000 values would make 2008"),
        (struct.pack(">2I", 0x801, 1999) + bytes(1999), "2000 images, and t10k-labels-idx1-ubyte.gz has 1999 labels"),
        (struct.pack(">2I", 0x801, 2000) + b"\x0a" * 2000, "has the label 10"),
    ):
        Path("t10k-labels-idx1-ubyte.gz").write_bytes(broken)
        try:
            read_digits(Path("."), "t10k")
        except BadFile as error:
            assert says in str(error), error
        else:
            raise AssertionError(f"no error: {says}")


def synthetic_benchmark():
    models = run("--list")
    for line in (
        "resnet50: 161 gradients, 25,557,032 parameters, 4,089M multiplications",
        "resnet101: 314 gradients, 44,549,160 parameters, 7,801M multiplications",
        "vgg16: 32 gradients, 138,357,544 parameters, 15,470M multiplications",
    ):
        assert line in models
    tiny = ["--model", "tiny", "--image-ms", 1, "--batch", 4, "--steps", 2, "--iterations", 3, "--json", "r.json"]
    text = run(*tiny, "--compare", "ddp", ranks=2)
    assert "tiny: 6 gradients" in text and "time beyond the step without communication" in text
    results = json.loads(Path("r.json").read_text())
    assert results["ranks"] == 2 and len(results["ddp"]["all_step_ms"]) == 3
    assert results["ddl"]["images_per_second"] > 0

    text = run(*tiny, "--sizes", "1,2", "--plot", "e.svg")
    assert len(re.findall(r"^ +[12]  libddl .*%", text, re.MULTILINE)) == 2
    sizes = json.loads(Path("r.json").read_text())["sizes"]
    assert [one["ranks"] for one in sizes] == [1, 2] and sizes[0]["none"]["efficiency"] == 1
    if importlib.util.find_spec("matplotlib") is None:
        check_picture("e.svg", "libddl", "ideal", "ranks", "efficiency [%]")
    fails("--sizes", "2,1", says="2,1 is not a list of growing numbers")
    fails("--sizes", "1,2", says="run the program without ddlrun", ranks=1)


def elastic():
    for ranks in (None, 2):
        assert "weights [1.    1.999 2.999 4.    4.998]" in run(ranks=ranks)


def elastic_torch():
    for ranks in (None, 2):
        text = run("--epochs", 10, ranks=ranks)
        assert number(rf"{ranks or 1} ranks: loss (\S+)", text) < 0.03
        assert text.count("goes on in epoch 0 after 0 samples") == (ranks or 1)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    {
        "pinn": pinn, "mnist": mnist, "synthetic_benchmark": synthetic_benchmark, "elastic": elastic,
        "elastic_torch": elastic_torch,
    }[EXAMPLE]()
print(f"{EXAMPLE}: passed", flush=True)
