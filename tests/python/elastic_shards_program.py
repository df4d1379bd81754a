"""Ranks of jobs are killed, and with them what they have of their own; the others, and new ones, go on with all of it."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile

NUMBERS = 22  # no multiple of 3 or 4
STEPS = 20


def part_of(numbers, rank, size):
    return numbers[rank * len(numbers) // size : (rank + 1) * len(numbers) // size]


def die_after_barrier():
    """When no rank is still in the commit before; also if another one dies first: else the job has a rank too many."""
    import ddl

    with contextlib.suppress(ddl.Error):
        ddl.barrier()
    os.kill(os.getpid(), signal.SIGKILL)


def train_as_a_rank(victims, size, can_reshard):
    """victims: ranks that die in generation 0 between two commits. size: of the generation that ends the job."""
    import numpy

    import ddl
    from ddl import elastic

    def reshard(parts, rank, size):
        return part_of(numpy.concatenate(parts), rank, size).copy()

    @elastic.run
    def train(state):
        print(f"generation {elastic.generation()}: step {state.step} of rank {ddl.rank()}", flush=True)
        while state.step < STEPS or ddl.size() != size:
            state.part.value += 1  # in place, on its own rank alone
            state.step += 1
            if elastic.generation() == 0 and state.step == 9 and ddl.rank() in victims:
                die_after_barrier()
            ddl.barrier()
            if state.step % 2 == 0:
                state.commit()
        found = numpy.concatenate(ddl.allgather_object(state.part.value))
        assert (found == 1000 * numpy.arange(NUMBERS) + state.step).all(), found

    ddl.init()
    own = part_of(1000 * numpy.arange(NUMBERS), ddl.rank(), ddl.size()).copy()
    train(elastic.ObjectState(step=0, part=elastic.Shard(own, reshard if can_reshard else None)))


def run_job(victims, size, *options, can_reshard=True):
    job = subprocess.run(
        ["ddlrun", "--timeout", "60", "--min-np", "1", "-H", "localhost:2,127.0.0.1:2", *options,
         sys.executable, __file__, *map(str, (victims, size, int(can_reshard)))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
    )
    return job.returncode, job.stdout + job.stderr


def is_in(expected, ended):
    status, text = ended
    assert re.search(expected[1], text) and status == expected[0], f"exit {status}\n{text}"


STAY_AWAY = "--blacklist-cooldown-range", "3600", "3600"
COME_BACK = "--blacklist-cooldown-range", "1", "1", "--elastic-settle", "0"


def main():
    is_in((0, "generation 1: step 8 of rank 2"), run_job("3", 3, *STAY_AWAY))
    is_in((0, "generation 2: step [0-9]+ of rank 3"), run_job("0", 4, *COME_BACK))
    is_in((0, "generation 1: step 8 of rank 1"), run_job("23", 2, *STAY_AWAY))  # a host
    lost = "the shards of ranks 1, 3 of 4 at commit 4 are lost with the ranks that held a copy"
    is_in((1, f"{lost}, and there is no file"), run_job("13", 2, *STAY_AWAY))
    with tempfile.TemporaryDirectory() as folder:
        file = "--state-dir", folder, "--state-interval", "2"
        is_in((0, f"ddl: {lost}; going back to commit [24] in {folder}"), run_job("13", 2, *STAY_AWAY, *file))
    is_in((1, "the shard part has no reshard"), run_job("3", 3, *STAY_AWAY, can_reshard=False))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train_as_a_rank([int(one) for one in sys.argv[1]], int(sys.argv[2]), sys.argv[3] == "1")
    else:
        main()
