"""Horovod's own tests of horovod.torch, which is ddl.torch here. The argument is a folder of Horovod's sources.

A rank succeeds if every test passes but EXCEPTIONS, which are not run, SKIPPED, which skip themselves, and POLLS, which
may fail at one assertion.
"""
import faulthandler
import os
import sys
import types
import unittest
import unittest.mock

import torch

import ddl.torch

# docs/guide/from-horovod.md says why.
EXCEPTIONS = {
    "horovod_join_allgather",  # expects an error while a rank has joined
    "horovod_join_broadcast",  # likewise
    "broadcast_state_no_grad",  # expects gradients that broadcast_optimizer_state() has left behind
}
# They expect a poll() that is not true: libddl begins at once, and may have ended by then.
POLLS = {"horovod_allreduce_async_fused", "horovod_reducescatter_async_fused"}
# Those that Horovod built with Gloo skips, too, on a machine without GPUs.
SKIPPED = {
    "broadcast_state_gpu", "gpu_required", "horovod_allreduce_cpu_gpu_error", "horovod_allreduce_multi_gpu",
    "horovod_alltoall_splits_on_gpu", "horovod_grouped_allreduce_cpu_gpu_error", "horovod_sync_batch_norm",
    "model_parallelism",
    "delta_optimizer",  # Adasum
    "timeline_api",  # by Horovod itself
}
TESTS = 115
# Of one test, on a machine that does other work, too.
SECONDS = 120


def module(name, **names):
    """A module of names alone, for import."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(names)


def imported(sources):
    """The class of the tests. What the file imports beside PyTorch and Horovod is hardly used by it."""
    module("horovod", torch=ddl.torch)
    sys.modules["horovod.torch"] = ddl.torch
    for name in ("horovod.runner", "horovod.runner.util"):
        module(name)
    module("horovod.runner.util.threads", in_thread=None)
    module("pytest", mark=types.SimpleNamespace(skip=unittest.skip))
    sys.modules["mock"] = unittest.mock
    # The tests take every optimizer whose module is PyTorch's. This one, of PyTorch 2.9, takes matrices only; the
    # models of the tests have vectors, too.
    if hasattr(torch.optim, "Muon"):
        torch.optim.Muon.__module__ = "not for vectors"
    sys.path.insert(0, os.path.join(sources, "test/parallel"))
    import test_torch

    return test_torch.TorchTests


class Result(unittest.TextTestResult):
    """With an end for a test in which a rank waits for ever."""

    def startTest(self, test):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        super().startTest(test)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)


def short(test):
    return test.id().rpartition(".test_")[2]


def main():
    torch.set_num_threads(1)
    tests = imported(sys.argv[1])
    for name in EXCEPTIONS:
        delattr(tests, f"test_{name}")
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(tests)
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    skipped = {short(test) for test, _ in result.skipped}
    by_chance = {short(test) for test, text in result.failures if "poll() always returns True" in text} & POLLS
    failed = [short(test) for test, _ in (*result.failures, *result.errors)]
    wrong = [f"{name} fails" for name in failed if name not in by_chance]
    wrong += [f"{name} is skipped" for name in skipped - SKIPPED]
    if result.testsRun != TESTS - len(EXCEPTIONS):
        wrong.append(f"there are {result.testsRun} tests")
    print(f"rank {os.environ['RANK']}: {'; '.join(wrong) or 'right'}", flush=True)
    sys.exit(1 if wrong else 0)


main()
