"""monitored_barrier() over a group's store, which leaves the process set usable when ranks are missing. Its errors have
the words of PyTorch, by which programs know them."""
from __future__ import annotations

import time

from ddl.torch.distributed.joining import Keys
from ddl.torch.distributed.works import BackendError


def _listed(ranks: list[int]) -> str:
    return ", ".join(str(rank) for rank in ranks)


def monitored_barrier(keys: Keys, prefix: str, rank: int, size: int, seconds: float, wait_all_ranks: bool) -> None:
    """Every rank has called it when it returns. Rank 0 says which ranks have not, the first of them or all. prefix: of
    this barrier's keys."""
    milliseconds = round(seconds * 1000)
    if rank != 0:
        keys.set(f"{prefix}/{rank}", b"here")
        if keys.missing([f"{prefix}/end"], seconds) or keys.get(f"{prefix}/end") != b"passed":
            raise BackendError(f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting "
                               "for send/recv from rank 0. Please check rank 0 logs for faulty rank.")
        return
    deadline = time.monotonic() + seconds
    missing: list[int] = []
    passed: list[int] = []
    for other in range(1, size):
        left = deadline - time.monotonic()
        if left <= 0 and not wait_all_ranks and not missing:
            keys.set(f"{prefix}/end", b"failed")
            who = f"Successfully processed ranks: {_listed(passed)}" if passed else "No ranks successfully processed"
            raise BackendError(f"Rank 0 timed out in monitoredBarrier after {milliseconds} ms. {who} in "
                               "monitoredBarrier.")
        if keys.missing([f"{prefix}/{other}"], left):
            missing.append(other)
            if not wait_all_ranks:
                break
        else:
            passed.append(other)
    keys.set(f"{prefix}/end", b"failed" if missing else b"passed")
    if missing:
        who = f"Ranks {_listed(missing)}" if wait_all_ranks else f"Rank {missing[0]}"
        raise BackendError(f"[Rank 0]: {who} failed to pass monitoredBarrier in {milliseconds} ms")
