"""Builds the distribution ddl-horovod: the package horovod beside this folder, for the ddlrun of the same version."""
import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
DDLRUN = (HERE.parent / "pyproject.toml").read_text(encoding="utf-8")
VERSION = re.search(r'^version = "(.*)"$', DDLRUN, re.MULTILINE)[1]

setup(
    version=VERSION,
    install_requires=[f"ddlrun=={VERSION}"],
    packages=find_packages("..", include=["horovod", "horovod.*"]),
    package_dir={"": ".."},
)
