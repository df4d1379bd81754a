"""What scripts take of horovod.common.util. ddl is not built for frameworks: it works with those that are installed."""
from __future__ import annotations

import os
import re
import sysconfig
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Callable, Iterator

from ddl import _horovod
from ddl._horovod import op_of
from horovod.common.exceptions import HorovodVersionMismatchError, get_version_mismatch_message

EXTENSIONS = ["tensorflow", "torch", "mxnet"]


def get_ext_suffix() -> str:
    return sysconfig.get_config_var("EXT_SUFFIX") or ".so"


def get_extension_full_path(pkg_path: str, *args: str) -> str:
    return os.path.join(os.path.dirname(pkg_path), *args[:-1], args[-1] + get_ext_suffix())


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether the framework is installed, and ddl has names for it."""
    return ext_base_name in ("tensorflow", "torch") and find_spec(ext_base_name) is not None


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """Nothing was built, so nothing can be missing."""


def check_installed_version(name: str, version: str, exception: Exception | None = None) -> None:
    """ddl was built for no version."""


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether the framework sees a GPU."""
    if not extension_available(ext_base_name):
        return False
    if ext_base_name == "torch":
        import torch

        return torch.cuda.is_available()
    import tensorflow

    return bool(tensorflow.config.list_physical_devices("GPU"))


def mpi_built(verbose: bool = False) -> bool:
    return _horovod.mpi_built()


def gloo_built(verbose: bool = False) -> bool:
    return _horovod.gloo_built()


def nccl_built(verbose: bool = False) -> int:
    return _horovod.nccl_built()


def ddl_built(verbose: bool = False) -> bool:
    return _horovod.ddl_built()


def ccl_built(verbose: bool = False) -> bool:
    return _horovod.ccl_built()


@contextmanager
def env(**variables: str | None) -> Iterator[None]:
    """Variables of this process, for a while. Those that are None stay as they are."""
    given = {name: value for name, value in variables.items() if value is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def handle_average_backwards_compatibility(op: Any, average: bool | None) -> Any:
    """The operation that is meant: average is an old name for op."""
    return op_of(average, op)


def get_average_backwards_compatibility_fun(reduce_ops: Any) -> Callable[[Any, bool | None], Any]:
    return handle_average_backwards_compatibility


def num_rank_is_power_2(num_rank: int) -> bool:
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l: list[Any], n: int) -> list[list[Any]]:
    """n lists, whose lengths differ by one at most."""
    size, longer = divmod(len(l), n)
    begins = [i * size + min(i, longer) for i in range(n + 1)]
    return [l[begin:end] for begin, end in zip(begins, begins[1:])]


def is_iterable(x: Any) -> bool:
    try:
        iter(x)
    except TypeError:
        return False
    return True


def _ordered(version: str) -> tuple[list[int], bool]:
    """Its numbers, and whether it is no version before them, such as "2.4.0rc1": in this order versions follow."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    if numbers is None:
        raise ValueError(f"{version!r} is not a version")
    is_final = re.match(r"[-_.]?(a|b|c|rc|alpha|beta|pre|preview|dev)\.?\d*", version[numbers.end() :]) is None
    release = [int(number) for number in numbers[0].split(".")]
    return release + [0] * (4 - len(release)), is_final


def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """target: "2.4.0", with three numbers."""
    if not isinstance(ver, str) or not isinstance(target, str) or len(target.split(".")) != 3:
        raise ValueError(f"versions are texts, and the one to compare with has three numbers: {ver!r}, {target!r}")
    return _ordered(ver) >= _ordered(target)
