"""Builds the package: the declarations of ddl.h become a module, which every Python from 3.8 on can read.

The header is that of this checkout, or in the folder of DDL_INCLUDE.
"""
import os
import re
from pathlib import Path

import cffi
from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


def header():
    folder = os.environ.get("DDL_INCLUDE") or HERE.parent / "runtime" / "include"
    return (Path(folder) / "ddl" / "ddl.h").read_text(encoding="utf-8")


def declarations(text):
    """The C declarations of the header without what only a preprocessor understands."""
    text = text.split("/* Names of version 0.1")[0]
    text = re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    return re.sub(r'extern "C" \{|\bDDL_API\b', "", text)


class BuildWithDeclarations(build_py):
    def run(self):
        super().run()
        ffi = cffi.FFI()
        ffi.set_source("ddl._abi", None)
        ffi.cdef(declarations(header()))
        target = Path(self.build_lib) / "ddl" / "_abi.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        ffi.emit_python_code(str(target))


setup(cmdclass={"build_py": BuildWithDeclarations})
