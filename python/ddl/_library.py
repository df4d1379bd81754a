"""libddl, found and loaded."""
from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Iterator

from ddl._abi import ffi

FILE = "libddl.so.0"
OLDEST = (0, 2)


def _beside_ddlrun() -> Iterator[str]:
    ddlrun = shutil.which("ddlrun")
    if ddlrun is None:
        return
    prefix = Path(ddlrun).resolve().parent.parent
    yield from (str(path) for path in sorted(prefix.glob(f"lib*/{FILE}")) + sorted(prefix.glob(f"lib/*/{FILE}")))


def _candidates() -> Iterator[str]:
    """What DDL_LIBRARY names, which ddlrun sets for its ranks; else the library in this package, what the loader
    finds, and the one beside the ddlrun in PATH."""
    named = os.environ.get("DDL_LIBRARY")
    if named:
        yield named
        return
    yield str(Path(__file__).parent / "lib" / FILE)
    yield FILE
    yield from _beside_ddlrun()


def _load():
    problems = []
    for path in _candidates():
        try:
            library = ffi.dlopen(path)
        except OSError as error:
            problems.append(str(error))
            continue
        version = ffi.string(library.ddl_version()).decode()
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            raise ImportError(f"{path} is libddl {version}, and this package needs {OLDEST[0]}.{OLDEST[1]} or newer")
        return library
    raise ImportError(
        f"{FILE} cannot be loaded. Start the program by ddlrun, put ddlrun's folder into PATH, or set DDL_LIBRARY to the "
        "file's path. Tried: "
        + "; ".join(problems)
    )


lib = _load()
NULL = ffi.NULL


def beside(name: str) -> Path:
    """The file of a module that a framework loads, in the folder "ddl" beside the libddl that is loaded."""
    address = int(ffi.cast("uintptr_t", ffi.addressof(lib, "ddl_version")))
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for fields in (line.rstrip("\n").split(maxsplit=5) for line in maps):
            begin, end = (int(part, 16) for part in fields[0].split("-"))
            if begin <= address < end:
                return Path(fields[-1]).parent / "ddl" / name
    raise ImportError(f"{FILE} is loaded, but /proc/self/maps does not say from which file")
