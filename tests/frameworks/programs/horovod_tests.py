"""Horovod's own tests of one file, with the package horovod of ddlrun in its place (ddlrun --as-horovod).

    horovod_tests.py SOURCES FILE [REPORT]     SOURCES: Horovod's repository; FILE: such as test_torch.py

A rank succeeds if every test passes but exceptions(), and at most as many skip themselves as with Horovod that was
built with Gloo, on a machine without GPUs. REPORT: a folder, into which each rank writes a file RANK.json of what came
out.
"""
import faulthandler
import importlib
import json
import os
import pathlib
import pickle
import sys
import types
import unittest
import unittest.mock

# How many tests pass and are skipped with Horovod 0.28.1 itself, by file; TensorFlow's are those of version 2.15.
HOROVOD = {
    "test_torch.py": (105, 10),
    "test_tensorflow.py": (143, 112),
    "test_tensorflow2_keras.py": (13, 1),
    "test_tensorflow_process_sets.py": (29, 14),
    "test_tensorflow2_keras_process_sets.py": (1, 1),
}
# What may fail: why, and words of the error; docs/guide/from-horovod.md has it, too.
POLL = "expects a poll() that is not true at once: libddl begins at once, and may have ended by then", ""
EXCEPTIONS = {
    "test_horovod_allreduce_async_fused": POLL,
    "test_horovod_reducescatter_async_fused": POLL,
}
# The same, where tf.keras is Keras 3: the tests use names of Keras 2.
RATE = "Keras 3 takes no lr for learning_rate", "not recognized: {'lr'"
NO_RATE = "Keras 3 makes no optimizer without learning_rate", "positional argument: 'learning_rate'"
GRADIENTS = "an optimizer of Keras 3 has no _compute_gradients()", "no attribute '_compute_gradients'"
REFERENCES = "a variable of Keras 3 has no ref()", "no attribute 'ref'"
KERAS_3 = {
    "test_broadcast_global_variables_callback_with_local_vars": REFERENCES,
    "test_grad_aggregation_with_inf_grad": GRADIENTS,
    "test_gradient_aggregation_0": NO_RATE,
    "test_gradient_aggregation_1": NO_RATE,
    "test_gradient_aggregation_with_local_vars_0": NO_RATE,
    "test_gradient_aggregation_with_local_vars_1": NO_RATE,
    "test_horovod_syncbn_cpu": ("BatchNormalization of Keras 3 takes no fused", "{'fused'"),
    "test_legacy_optimizer": ("Keras 3 has no legacy optimizers", "`keras.optimizers.legacy`"),
    "test_partial_distributed_gradient_tape": REFERENCES,
    "test_partial_distributed_optimizer": GRADIENTS,
    "test_process_set_optimizer": NO_RATE,
    "test_sparse_as_dense": RATE,
    "test_sparse_as_dense_with_grad_aggregation": RATE,
    "test_train_model_lr_schedule": ("Keras 3 has no losses.mean_squared_error", "'mean_squared_error'"),
}
# The same, with NumPy 2.
NUMPY_2 = {
    "test_horovod_reducescatter_grad_cpu_process_sets": (
        "expects a float16 of 0 to be less than 1e-8, which NumPy 2 rounds to 0, too", "0.0) not less than 1e-08"),
}
# Of one test, on a machine that does other work, too.
SECONDS = 120


def module(name, **names):
    """A module of names alone, for import."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(names)


def skip(reason):
    raise unittest.SkipTest(reason)


def expand(cases):
    """parameterized.expand(): a test for each case, in the place of the decorated one."""

    def decorate(function):
        names = sys._getframe(1).f_locals
        for number, case in enumerate(cases):
            arguments = case if isinstance(case, (list, tuple)) else (case,)
            names[f"{function.__name__}_{number}"] = lambda self, arguments=arguments: function(self, *arguments)

    return decorate


def stand_ins():
    """What the files import beside frameworks and Horovod, where an environment lacks it. Of each they use little."""
    mark = types.SimpleNamespace(
        skip=unittest.skip, skipif=lambda condition, reason: unittest.skipIf(condition, reason))
    module("pytest", mark=mark, skip=skip)
    module("parameterized", parameterized=types.SimpleNamespace(expand=expand))
    sys.modules["mock"] = unittest.mock
    try:
        import cloudpickle
    except ImportError:
        sys.modules["cloudpickle"] = pickle


def prepare(file):
    if file != "test_torch.py":
        return
    import torch

    torch.set_num_threads(1)
    # The tests take every optimizer whose module is PyTorch's. This one, of PyTorch 2.9, takes matrices only; the
    # models of the tests have vectors, too.
    if hasattr(torch.optim, "Muon"):
        torch.optim.Muon.__module__ = "not for vectors"


def exceptions(file):
    """What may fail here: why, and words of the error."""
    import numpy

    found = dict(EXCEPTIONS)
    if not numpy.__version__.startswith("1."):
        found.update(NUMPY_2)
    if "tensorflow" in file:
        from tensorflow import keras

        if getattr(keras, "__version__", "2").startswith("3."):
            found.update(KERAS_3)
    return found


class Result(unittest.TextTestResult):
    """Keeps how each test ended, with an end for one in which a rank waits for ever."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ends, self.told = {}, {}

    def startTest(self, test):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        super().startTest(test)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def _end(self, test, end, error=None):
        # Class and method: files have several classes, which inherit tests.
        name = ".".join(test.id().split(".")[-2:])
        if self.ends.get(name) != "failed":
            self.ends[name] = end
        if error is not None:
            self.told.setdefault(name, []).append(str(error[1]))

    def addSuccess(self, test):
        super().addSuccess(test)
        self._end(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        # A test of which parts are skipped, such as both modes of TensorFlow, passes: so pytest counts.
        is_part = hasattr(test, "test_case")
        self._end(test.test_case if is_part else test, "passed" if is_part else "skipped")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._end(test, "failed", error)

    def addError(self, test, error):
        super().addError(test, error)
        self._end(test, "failed", error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self._end(test, "failed", error)


def main():
    sources, file, report = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
    stand_ins()
    prepare(file)
    sys.path[:0] = [str(sources / "test" / "parallel"), str(sources / "test" / "utils")]
    suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(file[: -len(".py")]))
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    allowed = exceptions(file)
    why = {name: reason for name, (reason, _) in allowed.items()}
    failed = sorted(name for name, end in result.ends.items() if end == "failed")
    passed, skipped = list(result.ends.values()).count("passed"), len(result.skipped)
    passed_by_horovod, skipped_by_horovod = HOROVOD[file]
    wrong = []
    for name in failed:
        method = name.split(".")[1]
        if method not in allowed:
            wrong.append(f"{name} fails")
        elif not all(allowed[method][1] in one for one in result.told[name]):
            wrong.append(f"{name} fails otherwise than it may")
            why.pop(method, None)
    if skipped > skipped_by_horovod or passed + len(failed) < passed_by_horovod:
        wrong.append(f"{passed} pass, and {skipped} are skipped")
    rank = os.environ["RANK"]
    if report:
        told = {"of_horovod": HOROVOD[file], "ends": result.ends, "skipped": skipped, "why": why}
        pathlib.Path(report, f"{rank}.json").write_text(json.dumps(told), encoding="utf-8")
    print(f"rank {rank}: {'; '.join(wrong) or 'right'}", flush=True)
    sys.exit(1 if wrong else 0)


main()
