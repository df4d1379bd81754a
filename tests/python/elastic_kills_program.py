"""Kills ranks, agents and spawners at random, for so many minutes, while ranks train on samples: each sample is trained
on once in each epoch. Now and then the whole job is asked to end, or ddlrun is killed, and a new job goes on.

What the ranks have trained on is a part of their state, so it goes back with it when a rank is lost, and so do numbers
of which each rank has a part of its own. With --rank this is one of the ranks.
"""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

SAMPLES = 103  # for most numbers of ranks, some ranks have a sample more
BATCH = 4
LOST = "had of their own at commit"  # a rank and the one that held a copy, before there was a file


def train_until_stopped(stop):
    import numpy
    import torch

    import ddl.elastic
    import ddl.torch as hvd

    @hvd.elastic.run
    def train(state):
        print(f"generation {ddl.elastic.generation()}: rank {hvd.rank()} of {hvd.size()}, pid {os.getpid()}, epoch "
              f"{state.epoch}", flush=True)
        while True:
            common = state.sampler.common_batches(BATCH)
            batches = list(torch.utils.data.BatchSampler(state.sampler, BATCH, drop_last=False))
            for i in range(common + 1):  # the last ones may be shorter, or absent
                trained = numpy.zeros(SAMPLES + 1)
                if i < len(batches):
                    trained[batches[i]] = 1
                    state.sampler.record_batch(i, BATCH)
                trained[SAMPLES] = os.path.exists(stop)
                trained = ddl.allreduce(trained)
                state.times += trained[:SAMPLES]
                state.part.value += 1
                state.batches += 1
                if i % 3 == 2 and i < common:
                    state.commit()
            assert (state.times == 1).all(), f"epoch {state.epoch}: {state.times}"
            whole = numpy.concatenate(ddl.allgather_object(state.part.value))
            assert (whole == numpy.arange(SAMPLES) + state.batches).all(), f"{state.batches} batches: {whole}"
            state.times[:] = 0
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)
            state.commit()
            if trained[SAMPLES] > 0:
                return

    def part_of(parts, rank, size):
        return numpy.array_split(numpy.concatenate(parts), size)[rank].copy()

    hvd.init()
    part = ddl.elastic.Shard(part_of([numpy.arange(SAMPLES)], hvd.rank(), hvd.size()), part_of)
    state = hvd.elastic.TorchState(
        sampler=hvd.elastic.ElasticSampler(range(SAMPLES), seed=7), times=numpy.zeros(SAMPLES), epoch=0, batches=0,
        part=part,
    )
    train(state)
    print(f"done after {state.epoch} epochs", flush=True)


class Job:
    def __init__(self, stop, state):
        command = ["ddlrun", "--timeout", "800", "--min-np", "1", "-H", "localhost:3,127.0.0.1:3", "--json",
                   "--elastic-settle", "0.1", "--blacklist-cooldown-range", "1", "2", "--state-dir", state,
                   "--state-interval", "7", sys.executable, __file__, "--rank", stop]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.changed = threading.Condition()
        self.ranks = {}  # of the last generation: pids
        self.out, self.err = [], []
        self.readers = [
            threading.Thread(target=self._read, args=of, daemon=True)
            for of in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for reader in self.readers:
            reader.start()

    def _read(self, stream, lines):
        for line in stream:
            with self.changed:
                lines.append(line)
                found = re.search(r"generation (\d+): rank (\d+) of (\d+), pid (\d+)", line)
                if found:
                    generation, rank, size, pid = map(int, found.groups())
                    if self.ranks.get("generation", -1) < generation:
                        self.ranks = {"generation": generation, "size": size, "pids": {}}
                    if self.ranks["generation"] == generation:
                        self.ranks["pids"][rank] = pid
                self.changed.notify_all()

    def whole_generation(self):
        """Waits until all ranks of the last generation have said who they are. Nothing if the job could not go on."""
        with self.changed:
            whole = self.changed.wait_for(
                lambda: self.process.poll() is not None
                or (self.ranks and len(self.ranks["pids"]) == self.ranks["size"]), 120)
        if self.has_lost():
            return []
        with self.changed:
            assert whole and self.process.poll() is None, self.text()
            return list(self.ranks["pids"].values())

    def has_lost(self):
        """It has ended because the ranks that are left do not have all that there was."""
        if self.process.poll() != 1:
            return False
        for reader in self.readers:
            reader.join(60)
        return LOST in self.text()

    def end(self, number):
        """By a signal to ddlrun. SIGUSR1: the state is saved first, unless all ranks have just been killed."""
        self.process.send_signal(number)
        status = self.process.wait(120)
        expected = [119, 128 + signal.SIGKILL] if number == signal.SIGUSR1 else [-number]
        assert status in expected or self.has_lost(), f"exit {status}\n{self.text()}"

    def text(self):
        return "".join(self.out[-60:]) + "".join(self.err[-60:])


def parent_of(pid, name):
    """0: it is not one of this name."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        with open(f"/proc/{parent}/comm", encoding="utf-8") as file:
            return parent if file.read() == f"{name}\n" else 0
    except OSError:
        return 0


def victims(pids, chance):
    """Ranks, or a spawner or an agent, with which all ranks of its host end; one rank at least is left."""
    spawners = {pid: parent_of(pid, "ddl-spawner") for pid in pids}
    if chance.random() < 0.2 and len(set(spawners.values())) > 1 and 0 not in spawners.values():
        spawner = spawners[chance.choice(pids)]
        return [chance.choice([spawner, parent_of(spawner, "ddl-agent")])]
    return chance.sample(pids, min(len(pids) - 1, chance.choice([1, 1, 1, 2])))


def kill(pid):
    """Whether there was such a process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def main(minutes):
    with tempfile.TemporaryDirectory() as folder:
        disturb(minutes, f"{folder}/stop", f"{folder}/state")


def disturb(minutes, stop, state):
    chance = random.Random(46)
    job = Job(stop, state)
    kills, jobs = 0, 1
    deadline = time.monotonic() + 60 * minutes
    try:
        while time.monotonic() < deadline:
            pids = job.whole_generation()
            if not pids or chance.random() < 0.1:
                if pids:
                    job.end(chance.choice([signal.SIGUSR1, signal.SIGKILL]))
                job, jobs = Job(stop, state), jobs + 1
                continue
            kills += sum(pid > 1 and kill(pid) for pid in victims(pids, chance))
            with job.changed:  # until something is said, at most for so long: the kills come in all phases
                job.changed.wait(chance.choice([0, 0.01, 0.1, 0.5, 1.5]))
    finally:
        open(stop, "w").close()
        try:
            job.process.wait(120)
            if job.has_lost():
                job = Job(stop, state)
            status = job.process.wait(120)
        finally:
            job.process.kill()
    assert status == 0, f"exit {status}\n{job.text()}"
    assert any("done after" in line for line in job.out), job.text()
    assert os.listdir(state) == [], os.listdir(state)
    print(f"{kills} processes were killed in {jobs} jobs, the last one with {job.ranks['generation'] + 1} generations")
    assert kills > minutes


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        train_until_stopped(sys.argv[2])
    else:
        main(float(sys.argv[1]))
