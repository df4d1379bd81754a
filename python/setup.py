"""Builds the package: the declarations of ddl.h become a module, which every Python from 3.8 on can read.

The header is that of this checkout, or in the folder of DDL_INCLUDE. With DDL_INSTALLED, the folder in which ddlrun is
installed, its programs and libraries go into the package, and the script bin/ddlrun starts the one in there. The wheel
is then for every Python of this platform, or of that of the option --plat-name.
"""
import os
import re
import shutil
from pathlib import Path

import cffi
from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel
from distutils.command.build_scripts import build_scripts  # setuptools brings it where Python has none

HERE = Path(__file__).resolve().parent
INSTALLED = os.environ.get("DDL_INSTALLED")
# What man and shells look for in the environment's own share.
SHARED = ("man/man1", "man/man5", "bash-completion", "fish", "zsh")
# What the package does without: what is in share, what only programs of C and C++ need, and modulefiles. A wheel has no
# symbolic links, so libddl has only the name by which it is loaded.
OMITTED = ("man", "bash-completion", "fish", "zsh", "include", "cmake", "pkgconfig", "libddl.so", "libddl.so.0.*",
           "modulefiles")


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
        package = Path(self.build_lib) / "ddl"
        ffi = cffi.FFI()
        ffi.set_source("ddl._abi", None)
        ffi.cdef(declarations(header()))
        package.mkdir(parents=True, exist_ok=True)
        ffi.emit_python_code(str(package / "_abi.py"))
        if INSTALLED:
            shutil.copytree(INSTALLED, package, ignore=shutil.ignore_patterns(*OMITTED), dirs_exist_ok=True)


class BuildScript(build_scripts):
    def run(self):
        text = (HERE / "ddlrun").read_text(encoding="utf-8")
        script = Path(self.build_dir) / "ddlrun"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(text.replace("@VERSION@", self.distribution.get_version()), encoding="utf-8")
        script.chmod(0o755)


class Wheel(bdist_wheel):
    def get_tag(self):
        # No file in it is for one version of Python.
        return ("py3", "none", super().get_tag()[2])


class Contents(Distribution):
    def has_ext_modules(self):
        return bool(INSTALLED)


def shared_files():
    paths = [path for name in SHARED for path in sorted(Path(INSTALLED, "share", name).rglob("*"))]
    files = [path for path in paths if path.is_file()]
    return [(str(path.parent.relative_to(INSTALLED)), [os.path.relpath(path, HERE)]) for path in files]


setup(
    distclass=Contents,
    cmdclass={"build_py": BuildWithDeclarations, "build_scripts": BuildScript, "bdist_wheel": Wheel},
    scripts=["ddlrun"] if INSTALLED else [],
    data_files=shared_files() if INSTALLED else [],
)
