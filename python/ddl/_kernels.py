"""The modules in lib/ddl beside libddl, which make its calls operations of a framework."""
from __future__ import annotations

import atexit
import ctypes
from pathlib import Path
from typing import Any, Callable

from ddl._context import call_when_joined
from ddl._library import ffi


def open_module(file: Path, settle: Callable[[], None] | None = None) -> ctypes.CDLL:
    """The module, which is told the context from now on: at once, after each init(), and null before each shutdown().

    settle: waits for calls that the framework has not begun yet; called before the module is told null. Then this is
    done at the end of the process, too, before the framework ends.
    """
    module = ctypes.CDLL(str(file))
    tell = module.ddl_kernels_context
    tell.argtypes, tell.restype = [ctypes.c_void_p], None
    is_told = False

    def begin(context: Any) -> None:
        nonlocal is_told
        tell(int(ffi.cast("uintptr_t", context)))
        is_told = True

    def end() -> None:
        nonlocal is_told
        if is_told and settle is not None:
            settle()
        tell(None)
        is_told = False

    call_when_joined(begin, end)
    if settle is not None:
        atexit.register(end)
    return module
