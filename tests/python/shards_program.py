"""What ranks have of their own goes to other ranks, and comes back: by another rank, and for another number of ranks."""
import ddl
from ddl._objects import pickled
from ddl._shards import Shard, Shards, ShardsLost, holders, hosts_of
from harness import raises, run

ddl.init()
RANK, SIZE = ddl.rank(), ddl.size()


def test_holders():
    for hosts, expected in {
        (0,): [0], (0, 0, 0): [1, 2, 0], (0, 0, 0, 0): [2, 3, 0, 1], (0, 0, 1, 1): [2, 3, 0, 1],
        (0, 0, 0, 1): [3, 3, 3, 0], (0, 1, 1, 2): [1, 3, 3, 0], (0, 1, 2, 3): [2, 3, 0, 1],
    }.items():
        assert holders(hosts) == expected, hosts
    assert hosts_of([0, 1, 2, 0, 0, 1]) == [0, 0, 0, 1, 2, 2]


def test_copies_of_others():
    one, other = Shard([RANK]), Shard({"b": RANK})
    shards = Shards({"one": one, "other": other})
    shards.keep((1, 0))
    one.value.append("changed in place")
    shards.keep((2, 0))
    one.value, other.value = None, None
    shards.restore((1, 0))
    assert (one.value, other.value) == ([RANK], {"b": RANK})
    shards.keep_only((2, 0))
    for lost in range(SIZE if SIZE > 1 else 0):  # one rank after the other, of which each holds a copy of another one's
        if RANK == lost:
            shards = Shards({"one": one, "other": other})
        one.value = None
        shards.restore((2, 0))
        assert one.value == [RANK, "changed in place"]
        shards.keep((3 + lost, 0))
        shards.keep((2, 0))
    assert shards.layout() == ["the shard one", "the shard other"]


def test_values_of_other_numbers_of_ranks():
    own = Shard(None, lambda values, rank, size: (sum(values), rank, size))
    shards = Shards({"a": own})
    for ranks in (SIZE - 1, SIZE + 2):
        if ranks > 0:
            if RANK == SIZE - 1:
                shards.take((7, ranks), [pickled({"a": 1 + one}) for one in range(ranks)])
            shards.restore((7, ranks))
            assert own.value == (ranks * (ranks + 1) // 2, RANK, SIZE)
    own.reshard = None
    with raises(ddl.InvalidArgument, "the shard a has no reshard", f"the job has {SIZE} ranks instead of {SIZE + 2}"):
        shards.restore((7, SIZE + 2))


def test_values_that_are_lost():
    shards = Shards({"a": Shard(RANK)})
    if RANK == 0:
        shards.take((8, 0), [pickled({"a": 0})] * 4)
        del shards._copies[(8, 0)].values[1], shards._copies[(8, 0)].values[3]
    with raises(ShardsLost, "the shards of ranks 1, 3 of 4 at commit 8 are lost"):
        shards.restore((8, 0))


if __name__ == "__main__":
    run(globals(), RANK)
