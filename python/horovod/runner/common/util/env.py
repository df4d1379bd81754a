"""Which rank a process is, before init()."""
from __future__ import annotations

import os


def get_env_rank_and_size() -> tuple[int, int]:
    """As the launcher says; (0, 1) without one."""
    for rank, size in (("HOROVOD_RANK", "HOROVOD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                       ("PMI_RANK", "PMI_SIZE")):
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
        if rank in os.environ or size in os.environ:
            raise RuntimeError(f"only one of {rank} and {size} is in the environment")
    return 0, 1
