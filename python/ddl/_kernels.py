"""The modules in lib/ddl beside libddl, which make its calls operations of a framework."""
from __future__ import annotations

import atexit
import ctypes
from pathlib import Path
from typing import Any, Callable

from ddl._context import call_when_joined
from ddl._library import ffi, lib
from ddl.errors import Error, InvalidArgument, error_of

_SENTENCE_BYTES = 4096

# Each says which call has failed first since the process has joined.
_failures: list[Callable[[], Error | None]] = []
_noted: list[Error] = []  # of calls that Python makes for a framework
call_when_joined(lambda _: _noted.clear(), lambda: None)


def failed_call() -> Error | None:
    """What the first call of a kernel has failed with since the process has joined; None: none has failed.

    The framework raises an error of its own for it, which may be one that it raises for other reasons, too.
    """
    found = [*_noted, *(ask() for ask in _failures)]
    return next((one for one in found if one is not None), None)


def note_failure(error: Error) -> None:
    """For calls that Python makes for a framework."""
    if not isinstance(error, InvalidArgument):
        _noted.append(error)


def open_module(file: Path, settle: Callable[[ctypes.CDLL], None] | None = None) -> ctypes.CDLL:
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
            settle(module)
        tell(None)
        is_told = False

    ask = module.ddl_kernels_failure
    ask.argtypes, ask.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_int32

    def failure() -> Error | None:
        sentence = ctypes.create_string_buffer(_SENTENCE_BYTES)
        status = ask(sentence, len(sentence))
        return None if status == lib.DDL_OK else error_of(status, sentence.value.decode("utf-8", "replace"))

    _failures.append(failure)
    call_when_joined(begin, end)
    if settle is not None:
        atexit.register(end)
    return module
