"""The modules in lib/ddl beside libddl, which make its calls operations of a framework."""
from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Callable

from ddl import _context
from ddl._library import ffi, lib


class _Found(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]


def file_of(framework: str) -> Path:
    """Where the module lies: beside the libddl that has been loaded."""
    found, address = _Found(), int(ffi.cast("uintptr_t", ffi.addressof(lib, "ddl_version")))
    ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(found))
    return Path(found.file.decode()).resolve().parent / "ddl" / f"libddl_{framework}.so"


def follow_context(file: Path) -> ctypes.CDLL:
    """The module, which is told the context from now on: at once, at each init(), and before each shutdown()."""
    module = ctypes.CDLL(str(file))
    module.ddl_kernels_context.argtypes = [ctypes.c_void_p]
    tell: Callable[[int | None], None] = module.ddl_kernels_context
    _context.call_when_joined(lambda context: tell(int(ffi.cast("uintptr_t", context))), lambda: tell(None))
    return module
