"""The command horovodrun: ddlrun --as-horovod --oversubscribe, which takes horovodrun's options."""
from __future__ import annotations

import os
import sys

import horovod
from ddl._run import ddlrun_path
from horovod.common import util


def check_build() -> None:
    """Prints what horovodrun --check-build prints, of this Python and this machine."""

    def line(works: object, name: str) -> str:
        return f"    [{'X' if works else ' '}] {name}"

    frameworks = [line(util.extension_available(name), title)
                  for name, title in (("tensorflow", "TensorFlow"), ("torch", "PyTorch"), ("mxnet", "MXNet"))]
    mpi, gloo = line(util.mpi_built(), "MPI"), line(util.gloo_built(), "Gloo")
    operations = [line(util.nccl_built(), "NCCL"), line(util.ddl_built(), "DDL"), line(util.ccl_built(), "CCL")]
    print(f"Horovod v{horovod.__version__}:", "", "Available Frameworks:", *frameworks, "",
          "Available Controllers:", mpi, gloo, "", "Available Tensor Operations:", *operations, mpi, gloo, "",
          "ddlrun --check-build says what works here, and why something does not.", sep="\n")


def run_commandline() -> None:
    """Becomes ddlrun."""
    words = sys.argv[1:]
    first = words[0] if words else ""
    if first in ("-v", "--version"):
        print(horovod.__version__)
    elif first in ("-cb", "--check-build"):
        check_build()
    else:
        ddlrun = ddlrun_path()
        sys.stdout.flush()
        # horovodrun starts any number of ranks on this machine.
        os.execv(ddlrun, [ddlrun, "--as-horovod", "--oversubscribe", *words])


if __name__ == "__main__":
    run_commandline()
