"""Ranks are killed in each phase of a recovery, one after the other; those that are left have the state of a whole commit.

Of eight ranks one is killed in a step, one while it copies the state of a commit, one in a callback, one that has joined
again and waits for the others, one that receives the state, and the one that sends it.
"""
import os
import re
import signal
import subprocess
import sys
import time

import ddl
from ddl import elastic

STEPS = 12
PID = os.getpid()


def die_if(is_victim):
    if is_victim:
        os.kill(PID, signal.SIGKILL)


where = None  # the number of ranks of the generation, and this process's rank in it


def is_rank(rank, size):
    return where == (size, rank)


class State(elastic.ObjectState):
    def save(self):
        super().save()
        # Some others may have no copy of this commit yet, some may.
        die_if(is_rank(6, 7) and self.step > 4)

    def restore(self):
        if is_rank(3, 6):
            self.kill_neighbor()
        super().restore()

    def sync(self, root_rank=0):
        die_if(is_rank(3, 4) and root_rank != 3)
        die_if(is_rank(1, 3) and root_rank == 1)
        super().sync(root_rank)

    def kill_neighbor(self):
        """Rank 4 has nothing else to do than to join again, and waits there for this one."""
        neighbor = self.pids[4]
        time.sleep(0.2)  # nothing is seen of it from here; it would be killed a little earlier
        os.kill(neighbor, signal.SIGKILL)


@elastic.run
def train(state):
    state.pids = ddl.allgather_object(PID)
    print(f"generation {elastic.generation()}: rank {ddl.rank()} of {ddl.size()} at step {state.step}", flush=True)
    while state.step < STEPS:
        state.trace.append(state.step)
        state.step += 1
        ddl.barrier()
        die_if(is_rank(7, 8) and state.step == 3)
        if state.step % 2 == 0:
            state.commit()
    assert state.trace == list(range(STEPS)), state.trace
    assert ddl.size() == 2


def as_a_rank():
    global where
    ddl.init()
    where = ddl.size(), ddl.rank()
    state = State(step=0, trace=[], pids=[])

    def callback():
        global where
        where = ddl.size(), ddl.rank()
        die_if(is_rank(5, 6))
        if is_rank(3, 4) or is_rank(0, 3):
            # As one that has come in the place of another.
            state._commits, state._syncs, state.step, state.trace = 0, 0, 0, ["of nobody"]
            state.save()

    state.register_reset_callbacks([callback])
    train(state)


def main():
    job = subprocess.run(
        ["ddlrun", "--timeout", "60", "--min-np", "1", "-H", "localhost:4,127.0.0.1:4", "--blacklist-cooldown-range",
         "3600", "3600", sys.executable, __file__, "rank"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
    )
    text = job.stdout + job.stderr
    assert job.returncode == 0, f"exit {job.returncode}\n{text}"
    sizes = re.findall(r"ddlrun: generation [0-9]+: going on with ([0-9]+) rank", text)
    # The rank that is killed while it waits may be a rank of a generation that does not come about.
    assert [size for size in sizes if size != "5"] == ["7", "6", "4", "3", "2"], f"{sizes}\n{text}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        as_a_rank()
    else:
        main()
