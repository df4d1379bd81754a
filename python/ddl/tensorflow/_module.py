"""The module libddl_tensorflow.so, whose operations TensorFlow runs without Python.

Where it does not fit the TensorFlow that is installed, functions of Python do the same (_fallback.py). With DDL_VERBOSE
it is said which of the two is used; DDL_TENSORFLOW_KERNELS=0 chooses the second.
"""
from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from ddl._context import version
from ddl._kernels import open_module
from ddl._library import beside

# Where the module works. On others it is tried first, in another process.
_TRIED = ("2.15", "2.16", "2.21")
# The C interface of 2.12 lacks it. Known without another process, which each rank would start each time.
_ASYNCHRONOUS = "TF_NewAsyncKernelBuilder"
_CHECK = "from ddl.tensorflow import _module; _module.check()"
_CHECK_SECONDS = 120  # importing TensorFlow takes long on a busy machine


def _problem_elsewhere() -> str:
    """What check() says in another process; "": the module works, which is asked once for each version."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ddlrun"
    works = cache / f"tensorflow-{tf.__version__}-libddl-{version()}-works"
    if works.exists():
        return ""
    settings = {**os.environ, "DDL_TENSORFLOW_KERNELS": "check"}
    # It finds modules where this process does, and not first in the working directory.
    check = f"import sys; sys.path[:] = {sys.path!r}; {_CHECK}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", check], env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, timeout=_CHECK_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its check in another process failed: {error}"
    if done.returncode != 0:
        return f"its check in another process ended with {done.returncode}: {done.stderr.strip()[-400:]}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        works.touch()
    except OSError:
        pass  # asked again at the next start
    return ""


def _has_asynchronous_kernels() -> bool:
    return hasattr(ctypes.CDLL("libtensorflow_framework.so.2"), _ASYNCHRONOUS)


def _load() -> tuple[Any, str]:
    """The operations, and why there are none."""
    wish = os.environ.get("DDL_TENSORFLOW_KERNELS", "")
    if wish == "0":
        return None, "DDL_TENSORFLOW_KERNELS is 0"
    file = beside("libddl_tensorflow.so")
    if not file.exists():
        return None, f"there is no {file}"
    if not _has_asynchronous_kernels():
        return None, f"TensorFlow {tf.__version__} has no {_ASYNCHRONOUS} in its C interface"
    if wish != "check" and ".".join(tf.__version__.split(".")[:2]) not in _TRIED:
        problem = _problem_elsewhere()
        if problem:
            return None, problem
    try:
        found = tf.load_op_library(str(file))
    except (tf.errors.OpError, RuntimeError) as error:
        return None, str(error)
    module = open_module(file)
    module.ddl_tensorflow_problem.restype = ctypes.c_char_p
    problem = module.ddl_tensorflow_problem().decode()
    return (None, problem) if problem else (found, "")


operations, problem = _load()
if os.environ.get("DDL_VERBOSE", "0") not in ("", "0"):
    way = f"functions of Python, because {problem}" if operations is None else "libddl's kernels"
    print(f"ddl.tensorflow: operations of TensorFlow {tf.__version__} are {way}", file=sys.stderr)


def check() -> None:
    """Ends the process with an error if the module does not work with this TensorFlow."""
    if operations is None:
        raise SystemExit(problem)
    one = tf.constant([1, 2, 3])
    sums = tf.function(lambda: tf.add_n([operations.ddl_check(value=one) for _ in range(20)]))
    if operations.ddl_check(value=one).numpy().tolist() != [1, 2, 3] or sums().numpy().tolist() != [20, 40, 60]:
        raise SystemExit("the module's answers are wrong")
