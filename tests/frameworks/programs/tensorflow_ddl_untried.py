"""A version of TensorFlow that nobody has tried: ddl.tensorflow tries its module in another process first.

Argument: how that process ends, "well" or "badly".
"""
import os
import pathlib
import stat
import sys
import tempfile

import tensorflow as tf

WELL = sys.argv[1] == "well"
tf.__version__ = "2.99.0"
with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_CACHE_HOME"] = folder
    if not WELL:
        crash = pathlib.Path(folder, "python")
        crash.write_text("#!/bin/sh\necho a crash >&2\nkill -SEGV $$\n", encoding="utf-8")
        crash.chmod(stat.S_IRWXU)
        sys.executable = str(crash)
    import ddl.tensorflow as hvd
    from ddl.tensorflow import _module

    kept = list(pathlib.Path(folder).glob("ddlrun/tensorflow-2.99.0-*-works"))
wrong = []
if (_module.operations is not None) != WELL or len(kept) != int(WELL):
    wrong.append(f"the operations are {_module.operations}, and {len(kept)} checks have been kept")
if not WELL and "ended with -11: a crash" not in _module.problem:
    wrong.append(f"the reason is: {_module.problem}")
hvd.init()
found = hvd.allreduce(tf.constant([1.0 + hvd.rank()]), op=hvd.Sum).numpy().tolist()
if found != [hvd.size() * (hvd.size() + 1) / 2]:
    wrong.append(f"the sum is {found}")
print(f"ddl.tensorflow: rank {hvd.rank()}: {'; '.join(wrong) or 'right'}", flush=True)
sys.exit(bool(wrong))
