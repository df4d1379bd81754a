"""Horovod's names for ddl: a script that has `import horovod.torch as hvd` runs unchanged.

`ddlrun --as-horovod` puts the folder of this package before an installed Horovod; the distribution ddl-horovod installs
it where there is none. docs/guide/from-horovod.md says what is the same and what differs.
"""
from horovod._distribution import refuse_to_share_a_folder

refuse_to_share_a_folder()

try:
    import ddl
except ModuleNotFoundError as error:
    if error.name not in ("ddl", "_cffi_backend"):
        raise
    import sys

    needed = "cffi" if error.name == "_cffi_backend" else "the wheel of ddlrun, or Debian's python3-ddl"
    raise ImportError(
        f"the package horovod of ddlrun needs {error.name}, which {sys.executable} does not have: install {needed}"
        " there (INSTALL.md of ddlrun), or start the program without --as-horovod"
    ) from None

import ddl._horovod

ddl._horovod.acts_as_horovod = True

from horovod.runner import run

# What scripts compare, and which ddl runs them.
__version__ = f"0.28.1+ddl.{ddl.__version__}"
