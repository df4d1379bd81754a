"""The modules in lib/ddl beside libddl, which make its calls operations of a framework."""
from __future__ import annotations

import ctypes
from pathlib import Path

from ddl._context import call_when_joined
from ddl._library import ffi


def open_module(file: Path) -> ctypes.CDLL:
    """The module, which is told the context from now on: at once, after each init(), and null before each shutdown()."""
    module = ctypes.CDLL(str(file))
    tell = module.ddl_kernels_context
    tell.argtypes, tell.restype = [ctypes.c_void_p], None
    call_when_joined(lambda context: tell(int(ffi.cast("uintptr_t", context))), lambda: tell(None))
    return module
