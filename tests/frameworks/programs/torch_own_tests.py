"""PyTorch's own tests of torch.distributed, on the ranks of this job: torch_own_tests.py [-v] BACKEND [TEST...]

They ask for a backend by its name before they begin: to them this one is gloo, while the groups are made by BACKEND.
Without names, those that gloo passes on two ranks and that this version of PyTorch has (torch_own_tests.txt: but for
test_get_backend, which asks for the name "gloo"); "all": every test of this version, for making that list. Each rank
prints what has not passed; with -v, what has, too.
"""
import inspect
import os
import signal
import sys
import tempfile
import traceback
import types
import unittest
from datetime import timedelta
from pathlib import Path

os.environ.update(BACKEND="gloo", TEMP_DIR="")
os.environ.setdefault("USE_LIBUV", "0")
# Its test programs need a package of theirs for texts that are expected; these tests have none.
sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)

import torch
import torch.distributed as dist
from torch.testing._internal import common_distributed, common_utils
from torch.testing._internal.distributed import distributed_test

PATIENCE_SECONDS = 60
SKIPS = {skip.exit_code for skip in common_distributed.TEST_SKIPS.values()}


class Barrier:
    """In place of theirs, which looks at files every tenth of a second, and is lost when a test fails."""

    store = None
    number = 0

    @classmethod
    def begin(cls, name, store):
        cls.number, cls.store = 0, dist.PrefixStore(name, store)

    @classmethod
    def sync(cls, wait_for=None, timeout=PATIENCE_SECONDS):
        cls.number += 1
        cls.meet(cls.store, str(cls.number), timeout)

    @classmethod
    def give_up(cls):
        """This rank has failed: no other waits for it."""
        for number in range(cls.number + 1, cls.number + 20):
            cls.store.set(f"{number}/{Tests.rank}", "failed")

    @staticmethod
    def meet(store, name, seconds):
        store.set(f"{name}/{Tests.rank}", "here")
        store.wait([f"{name}/{rank}" for rank in range(Tests.world_size)], timedelta(seconds=seconds))


class Tests(common_distributed.MultiProcessTestCase, distributed_test.DistributedTest._DistTestBase):
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])

    @property
    def init_method(self):
        return f"{common_utils.FILE_SCHEMA}{self.file_name}"


def asks_for_gloo(name):
    """Older versions of monitored_barrier() refuse groups whose backend has another name; those of the group do not."""
    is_of_group = name == "test_monitored_barrier_gloo_rank_0_timeout"
    asks = "only implemented for GLOO" in inspect.getsource(dist.monitored_barrier)
    return asks and name.startswith("test_monitored_barrier") and not is_of_group


def out_of_time(*_):
    raise TimeoutError(f"it did not end within {2 * PATIENCE_SECONDS} s")


def outcome(name, backend, store, folder):
    """"" if it has passed, "skipped", or what went wrong."""
    test = Tests(name)
    test.file_name = str(folder / name)
    seconds = distributed_test.CUSTOM_PG_TIMEOUT.get(name, distributed_test.default_pg_timeout)
    settings = dict(rank=test.rank, world_size=test.world_size, timeout=timedelta(seconds=seconds))
    dist.init_process_group(backend, store=dist.PrefixStore(name, store), **settings)
    common_utils.set_rng_seed(common_utils.SEED)
    signal.alarm(2 * PATIENCE_SECONDS)
    Barrier.begin(name, store)
    try:
        Barrier.sync()
        getattr(test, name)()
        Barrier.sync()
    except unittest.SkipTest:
        Barrier.give_up()
        return "skipped"
    except SystemExit as error:
        Barrier.give_up()
        return "skipped" if error.code in SKIPS else f"exit({error.code})"
    except BaseException:
        Barrier.give_up()
        return traceback.format_exc()
    finally:
        signal.alarm(0)
        if dist.is_initialized():
            dist.destroy_process_group()
    return ""


def main():
    is_verbose = "-v" in sys.argv
    backend, *names = [word for word in sys.argv[1:] if word != "-v"]
    listed = (Path(__file__).parent / "torch_own_tests.txt").read_text().split()
    if names == ["all"]:
        names = sorted(name for name in dir(Tests) if name.startswith("test_"))
    names = names or [name for name in listed if hasattr(Tests, name) and not asks_for_gloo(name)]
    if backend == "ddl":
        import ddl.torch.process_group  # noqa: F401  It registers the backend, also where PyTorch does not look for it.
    rank, ranks = Tests.rank, Tests.world_size
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), ranks, rank == 0)
    own = dist.PrefixStore("own", store)
    distributed_test.Barrier = Barrier
    signal.signal(signal.SIGALRM, out_of_time)
    passed = 0
    with tempfile.TemporaryDirectory() as name:
        # Rank 0's folder, where the tests of all ranks have their files.
        if rank == 0:
            for part in ("barrier", "test_dir", "init_dir"):
                (Path(name) / part).mkdir()
            own.set("folder", name)
        folder = Path(own.get("folder").decode())
        os.environ["TEMP_DIR"] = str(folder)
        for name in names:
            what = outcome(name, backend, store, folder)
            passed += what == ""
            if what or is_verbose:
                print(f"rank {rank}: {name}: {what or 'passed'}", flush=True)
            Barrier.meet(own, name, 3 * PATIENCE_SECONDS)
    end = ": right" if passed == len(names) else ""
    print(f"rank {rank}: {passed} of {len(names)} tests passed{end}", flush=True)
    sys.exit(passed != len(names))


if __name__ == "__main__":
    main()
