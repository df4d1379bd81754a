"""What each rank of an elastic job has of its own, and the copies of it that another rank holds."""
from __future__ import annotations

import pickle
from typing import Any, Callable, NamedTuple, Sequence, Tuple

from ddl._context import allgather, alltoall, call_ordered, local_rank, rank, size, world
from ddl._library import ffi, lib
from ddl._objects import allgather_object, numbers, pickled
from ddl.errors import InvalidArgument

Version = Tuple[int, int]  # commits, and the times that ranks have come together since


class Shard:
    """A value of an ObjectState that is another one on each rank: a part of an optimizer's state, random numbers, ...

        state = elastic.ObjectState(step=0, momentum=elastic.Shard(momentum, reshard))

    A commit copies it to the memory of another rank, on another host if there is one. So a process in the place of one
    that was lost gets its value, and so do all ranks if their number has changed.

    value: what the rank works with, and what pickle can copy. It is another object after a rank was lost or has come.
    reshard: ``reshard(values, rank, size)`` makes this rank's value of those that all ranks had, by rank, when there
    were more ranks, or fewer. None: the job ends then.
    """

    def __init__(self, value: Any, reshard: Callable[[list[Any], int, int], Any] | None = None):
        self.value = value
        self.reshard = reshard


class _Copies(NamedTuple):
    """Of one version: pickled values, by the rank whose they are."""

    ranks: int  # that there were
    values: dict[int, bytes]


class ShardsLost(Exception):
    """A sentence says whose: nobody has a copy."""


def holders(hosts: Sequence[int]) -> list[int]:
    """For each rank the one that holds a copy of its shards. hosts: by rank, the number of its host, from 0.

    It is on the host half the hosts away, or half the ranks away on the only host; the rank itself if it is alone.
    """
    ranks_of: list[list[int]] = [[] for _ in set(hosts)]
    for one, host in enumerate(hosts):
        ranks_of[host].append(one)
    held = []
    for host in hosts:
        away = (host + len(ranks_of) // 2) % len(ranks_of)
        place = ranks_of[host].index(len(held)) + (len(ranks_of[host]) // 2 if away == host else 0)
        held.append(ranks_of[away][place % len(ranks_of[away])])
    return held


def hosts_of(local_ranks: Sequence[int]) -> list[int]:
    """The hosts of ranks that are numbered host by host."""
    hosts: list[int] = []
    for one in local_ranks:
        hosts.append(hosts[-1] + (one == 0) if hosts else 0)
    return hosts


class Shards:
    """The shards of a state, by name, of this rank, and copies. restore(), keep() and of_all() are collective."""

    def __init__(self, shards: dict[str, Shard]):
        self._shards = shards
        self._copies: dict[Version, _Copies] = {}

    def keep(self, version: Version) -> None:
        """Copies the values, for this rank and for another one. It counts when all ranks have done that."""
        own, local_ranks = numbers(1), numbers(size())
        own[0] = local_rank()
        allgather(own, out=local_ranks)
        values = pickled({name: shard.value for name, shard in self._shards.items()})
        to = [b""] * size()
        to[holders(hosts_of(local_ranks))[rank()]] = values
        received = {one: value for one, value in enumerate(_exchange(to)) if value}
        self._copies[version] = _Copies(size(), {**received, rank(): values})

    def restore(self, version: Version) -> None:
        """Gives this rank its values of that version. Errors: ShardsLost, and InvalidArgument if the number of ranks has
        changed and a shard has no reshard; the same on all ranks."""
        own = self._copies.get(version)
        found = allgather_object((own.ranks, sorted(own.values)) if own else None)
        ranks = max(one[0] for one in found if one)
        sources = [
            # The rank itself, if it has it.
            next((by for by in (one, *range(size())) if by < size() and found[by] and one in found[by][1]), None)
            for one in range(ranks)
        ]
        lost = [one for one, source in enumerate(sources) if source is None]
        if lost:
            raise ShardsLost(
                f"the shards of ranks {', '.join(map(str, lost))} of {ranks} at commit {version[0]} are lost with the "
                "ranks that held a copy"
            )
        if ranks == size():
            mine = [own.values[one] if own and sources[one] == rank() else b"" for one in range(ranks)]
            values = pickle.loads(_exchange(mine)[sources[rank()]])
            for name, shard in self._shards.items():
                shard.value = values[name]
            return
        for name, shard in self._shards.items():
            if shard.reshard is None:
                raise InvalidArgument(
                    f"the shard {name} has no reshard, and the job has {size()} ranks instead of {ranks}; "
                    "give it one, or start the job with --min-np and --max-np as -np"
                )
        mine = [own.values[one] if own and sources[one] == rank() else None for one in range(ranks)]
        theirs = allgather_object(mine)
        everything = [pickle.loads(theirs[source][one]) for one, source in enumerate(sources)]
        for name, shard in self._shards.items():
            shard.value = shard.reshard([values[name] for values in everything], rank(), size())

    def of_all(self, version: Version) -> list[bytes]:
        """The values of all ranks, for a file."""
        return allgather_object(self._copies[version].values[rank()])

    def take(self, version: Version, values: list[bytes]) -> None:
        """What of_all() has returned in an earlier job, on one rank; restore() gives it to all."""
        self._copies[version] = _Copies(len(values), dict(enumerate(values)))

    def keep_only(self, version: Version) -> None:
        """All ranks have this version: older ones are not needed any more."""
        self._copies = {version: self._copies[version]}

    def layout(self) -> list[str]:
        return [f"the shard {name}" for name in sorted(self._shards)]


def _exchange(to: list[bytes]) -> list[bytes]:
    """The bytes for each rank; returns those from each. Collective."""
    counts, sizes = numbers(size()), numbers(size())
    for one, data in enumerate(to):
        counts[one] = len(data)
    alltoall(counts, out=sizes)
    sent, received = b"".join(to), bytearray(sum(sizes))
    send = ffi.from_buffer(sent), ffi.new("uint64_t[]", list(counts))
    receive = ffi.from_buffer(received), len(received), ffi.new("uint64_t[]", size())
    call_ordered(lib.ddl_alltoallv, (*send, *receive, lib.DDL_UINT8), world)
    parts, begin = [], 0
    for length in sizes:
        parts.append(bytes(memoryview(received)[begin : begin + length]))
        begin += length
    return parts
