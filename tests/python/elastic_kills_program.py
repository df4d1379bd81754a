"""Kills ranks, agents and spawners at random, for so many minutes, while ranks train (elastic_kills_rank.py). Now and
then the whole job is asked to end, or ddlrun is killed, and a new job goes on. In the end each sample has been trained
on once in each epoch, and the model is that of the same steps in one process.
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

from elastic_kills_rank import check_result

RANK_PROGRAM = os.path.join(os.path.dirname(__file__), "elastic_kills_rank.py")
LOST = "are lost with the ranks that held a copy"  # a rank and the one that held a copy, before there was a file


class Job:
    def __init__(self, folder):
        command = ["ddlrun", "--timeout", "800", "--min-np", "1", "-H", "localhost:3,127.0.0.1:3", "--json",
                   "--elastic-settle", "0.1", "--blacklist-cooldown-range", "1", "2", "--state-dir", f"{folder}/state",
                   "--state-interval", "7", sys.executable, RANK_PROGRAM, folder]
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


def disturb(minutes, folder):
    chance = random.Random(46)
    job = Job(folder)
    kills, jobs = 0, 1
    deadline = time.monotonic() + 60 * minutes
    try:
        while time.monotonic() < deadline:
            pids = job.whole_generation()
            if not pids or chance.random() < 0.1:
                if pids:
                    job.end(chance.choice([signal.SIGUSR1, signal.SIGKILL]))
                job, jobs = Job(folder), jobs + 1
                continue
            kills += sum(pid > 1 and kill(pid) for pid in victims(pids, chance))
            with job.changed:  # until something is said, at most for so long: the kills come in all phases
                job.changed.wait(chance.choice([0, 0.01, 0.1, 0.5, 1.5]))
    finally:
        open(f"{folder}/stop", "w").close()
        try:
            job.process.wait(120)
            if job.has_lost():
                job = Job(folder)
            status = job.process.wait(120)
        finally:
            job.process.kill()
    assert status == 0, f"exit {status}\n{job.text()}"
    assert any("done after" in line for line in job.out), job.text()
    assert os.listdir(f"{folder}/state") == []
    generations, epochs = check_result(folder)
    print(f"{kills} processes were killed in {jobs} jobs with {generations} generations and {epochs} epochs")
    assert kills > minutes


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        disturb(float(sys.argv[1]), folder)
