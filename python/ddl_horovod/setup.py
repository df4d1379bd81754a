"""Builds the distribution ddl-horovod: the package horovod that lies beside this folder, for the ddlrun of its version."""
import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'^version = "(.*)"$', (HERE.parent / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]

setup(
    version=VERSION,
    install_requires=[f"ddlrun=={VERSION}"],
    packages=find_packages("..", include=["horovod", "horovod.*"]),
    package_dir={"": ".."},
)
