"""Each sample of an epoch is trained on once, whatever happens: random jobs in virtual time, in one process."""
import math
import random
from collections import Counter
from contextlib import contextmanager

import ddl
from ddl.torch.elastic import ElasticSampler, TorchState
from harness import raises, run


@contextmanager
def as_rank(rank, size, allreduce=None):
    real = ddl.rank, ddl.size, ddl.allreduce
    ddl.rank, ddl.size, ddl.allreduce = lambda: rank, lambda: size, allreduce
    try:
        yield
    finally:
        ddl.rank, ddl.size, ddl.allreduce = real


class Job:
    """Ranks that train on batches. What the model has been trained on is what a commit keeps."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.length = self.random.choice([0, 1, 5, 8, 23, 64, 97])
        self.batch = self.random.randint(1, 5)
        self.says_whole_batches = self.random.random() < 0.5  # when it records the last one
        self.states = [self.new_state() for _ in range(self.random.randint(1, 8))]
        self.committed, self.pending = Counter(), []
        self.events = Counter()

    def new_state(self):
        return TorchState(sampler=ElasticSampler(range(self.length), seed=7), epoch=0)

    def on_ranks(self, action, allreduce=None):
        results = []
        for rank, state in enumerate(self.states):
            with as_rank(rank, len(self.states), allreduce):
                results.append(action(state))
        return results

    def commit(self):
        seen = []
        self.on_ranks(lambda state: state._agree(), lambda array, op, out: seen.append(array.tolist()))
        most = [max(one) for one in zip(*seen)]

        def maximum(array, op, out):
            assert op == ddl.MAX
            for i, one in enumerate(most):
                out[i] = one

        self.on_ranks(lambda state: state._agree(), maximum)
        self.on_ranks(lambda state: state.save())
        self.committed.update((self.states[0].epoch, sample) for sample in self.pending)
        self.pending = []

    def change(self, keep):
        """The next generation: some ranks that there were, and new ones, which get the state of one that is left."""
        keep = keep or [self.random.choice(self.states)]
        holder = self.random.choice(keep)
        saved, epoch = holder.sampler.state_dict(), holder.epoch
        count = self.random.randint(1, 8)
        self.states = keep[:count]
        while len(self.states) < count:
            state = self.new_state()
            state.sampler.load_state_dict(saved)
            state.epoch = epoch
            state.save()
            self.states.insert(self.random.randint(0, len(self.states)), state)  # rank 0 may be a new one
        self.on_ranks(lambda state: [handler.reset() for handler in state._handlers.values()])

    def lose(self):
        self.events["lost"] += 1
        self.pending = []
        self.on_ranks(lambda state: state.restore())
        self.change([state for state in self.states if self.random.random() < 0.7])

    def admit(self):
        self.events["changed"] += 1
        self.change([state for state in self.states if self.random.random() < 0.8])

    def train_epoch(self):
        """False: the ranks have changed, and the epoch is not at its end."""
        shares = self.on_ranks(lambda state: list(state.sampler))
        assert [len(share) for share in shares] == self.on_ranks(lambda state: len(state.sampler))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
        common = set(self.on_ranks(lambda state: state.sampler.common_batches(self.batch)))
        assert common == {min(map(len, shares)) // self.batch}
        for batch in range(math.ceil(max(map(len, shares)) / self.batch)):
            if self.random.random() < 0.08:
                self.lose()
                return False
            for rank, (state, share) in enumerate(zip(self.states, shares)):
                part = share[batch * self.batch : (batch + 1) * self.batch]
                if not part:
                    continue
                with as_rank(rank, len(self.states)):
                    state.sampler.record_batch(batch, self.batch if self.says_whole_batches else len(part))
                self.pending += part
            if batch < min(common) and self.random.random() < 0.4:
                self.commit()
                if self.random.random() < 0.2:
                    self.admit()
                    return False
        if self.random.random() < 0.1:
            self.lose()
            return False
        if self.random.random() < 0.5:  # before the next epoch begins, too
            self.commit()
            if self.random.random() < 0.5:
                self.lose()
                return False
        return True

    def run(self, epochs):
        while self.states[0].epoch < epochs:
            if not self.train_epoch():
                continue
            epoch = self.states[0].epoch
            # The samples belong to this epoch; the commit keeps that the next one has begun.
            self.committed.update((epoch, sample) for sample in self.pending)
            kept, self.pending = self.pending, []
            for state in self.states:
                state.epoch += 1
                state.sampler.set_epoch(state.epoch)
            if self.random.random() < 0.2:
                self.committed.subtract((epoch, sample) for sample in kept)
                self.lose()
                continue
            self.commit()
        assert +self.committed == Counter((epoch, sample) for epoch in range(epochs) for sample in range(self.length))


def test_random_jobs():
    events = Counter()
    for seed in range(600):
        job = Job(seed)
        job.run(3)
        events += job.events
    assert min(events["lost"], events["changed"]) > 300, events


def test_order():
    sampler = ElasticSampler(range(10), shuffle=False)
    with as_rank(1, 3):
        assert list(sampler) == [1, 4, 7] and len(sampler) == 3
        sampler.record_batch(0, 2)
        assert len(sampler) == 3  # of the iteration that has begun
        assert sampler.state_dict() == {"epoch": 0, "done": 6}
    with as_rank(1, 2):
        sampler.reset()
        assert len(sampler) == 2 and list(sampler) == [7, 9]
        sampler.record_indices([7, 9])
        assert sampler.state_dict() == {"epoch": 0, "done": 10}
        assert list(sampler) == [] and sampler.common_batches(1) == 0
    sampler.set_epoch(1)
    assert sampler.epoch == 1 and sampler.state_dict() == {"epoch": 1, "done": 0}
    shuffled = ElasticSampler(range(50), seed=1)
    with as_rank(0, 1):
        first = list(shuffled)
        assert sorted(first) == list(range(50)) and first != sorted(first) and first == list(shuffled)
        shuffled.set_epoch(2)
        assert list(shuffled) != first


def test_outside_a_job():
    with raises(ddl.InvalidArgument, "ddl.init()"):
        len(ElasticSampler(range(3)))


if __name__ == "__main__":
    run(globals(), 0)
