"""What run() and states do when ranks are lost or the job changes. A stand-in says so: the ranks of this job stay."""
import contextlib
import copy
import io
import os
import pickle
import shutil
import tempfile
from unittest.mock import patch

import numpy
import torch

import ddl
import ddl.elastic
import ddl.torch as hvd
from ddl import _context, _horovod
from ddl._state_file import StateFile
from ddl.elastic import HorovodInternalError, HostsUpdatedInterrupt, ObjectState
from ddl.torch.elastic import ElasticSampler, TorchState, get_handler_registry, set_handler_registry
from ddl.torch.optimizer import _Gradients
from harness import raises, run

hvd.init()
RANK, SIZE = ddl.rank(), ddl.size()
FIRST, CHANGED, LOST = _context.FIRST, _context.CHANGED, _context.LOST


class Elastic:
    """libddl, in whose job ranks go on. A generation has the same ranks as the one before."""

    def __init__(self, lib, first=0):
        self._lib = lib
        self._first = first
        self.joins = []  # reasons and numbers of commits
        self.refusals = []  # statuses of the next joins
        self.changes = []  # what the next checks say
        self.finished = 0
        self.aborts = []

    def __getattr__(self, name):
        return getattr(self._lib, name)

    def ddl_elastic_generation(self, context):
        return self._first + len(self.joins) if self._first == 0 else self._first

    def ddl_elastic_join(self, options, context):
        if self.refusals:
            return self.refusals.pop(0)
        self.joins.append((options.reason, options.commits))
        return self._lib.ddl_init(_context.ffi.NULL, context)

    def ddl_elastic_check(self, context, changed):
        changed[0] = self.changes.pop(0) if self.changes else 0
        return self._lib.DDL_OK

    def ddl_abort(self, context, code, text):
        self.aborts.append((code, text.decode()))
        return self._lib.DDL_OK

    def ddl_elastic_finished(self, context):
        self.finished += 1
        return self._lib.DDL_OK


@contextlib.contextmanager
def elastic_job(first=0):
    real = _context.lib
    job = _context.lib = ddl.elastic.lib = Elastic(real, first)
    try:
        yield job
    finally:
        _context.lib = ddl.elastic.lib = real


class Counted(ObjectState):
    """Counts what is done with it, and is another one on each rank at first."""

    def __init__(self, **values):
        super().__init__(rank=RANK, trace=[], **values)
        self.calls = []

    def restore(self):
        super().restore()
        self.calls.append("restore")

    def sync(self, root_rank=0):
        super().sync(root_rank)
        self.calls.append(f"sync from {root_rank}")

    def reset(self):
        self.calls.append("reset")


def test_job_that_is_not_elastic():
    with elastic_job(first=-1) as job:
        state = Counted()

        @ddl.elastic.run
        def train(state, value, fails=None):
            state.trace.append(value)
            state.commit()
            if fails:
                raise fails
            return value

        assert train(state, 3) == 3 and state.trace == [3]
        assert state.rank == 0  # all ranks begin with the state of rank 0
        for error in (ddl.PeerLost("a"), HorovodInternalError("a"), HostsUpdatedInterrupt()):
            with raises(type(error)):
                train(state, 4, fails=error)
        assert state.trace == [3, 4, 4, 4] and job.joins == [] and job.finished == 0
        assert state.calls == ["sync from 0"]  # the commits are the same on all ranks since then


def test_lost_ranks():
    with elastic_job() as job:
        state = Counted(step=0)
        state.register_reset_callbacks([lambda: state.calls.append("callback")])

        @ddl.elastic.run
        def train(state, steps):
            while state.step < steps:
                state.trace.append(state.step)  # in place
                state.step += 1
                if state.step % 3 == 0:
                    state.commit()
                if state.step == 5 and len(job.joins) == 0:
                    raise HorovodInternalError
                if state.step == 8 and len(job.joins) == 1:
                    if RANK == SIZE - 1:
                        raise HorovodInternalError("alone")  # the others learn it by a call that fails
                    ddl.barrier()
            return "done"

        if SIZE == 1:
            assert train(state, 7) == "done" and job.joins == [(LOST, 1)]
            return
        assert train(state, 10) == "done"
        assert state.trace == list(range(10)) and state.step == 10
        assert job.joins == [(LOST, 1), (LOST, 2)] and job.finished == 1
        assert state.calls == ["sync from 0", *["restore", "reset", "callback"] * 2], state.calls


def test_planned_changes():
    with elastic_job() as job:
        state = Counted(step=0)

        @ddl.elastic.run
        def train(state):
            while state.step < 6:
                state.step += 1
                state.trace.append(state.step)
                job.changes = [state.step in (2, 4)]
                if state.step < 3:
                    state.commit()
                else:
                    state.check_host_updates()
                    if state.step == 5 and len(job.joins) == 2:
                        raise HorovodInternalError
            job.changes = []

        train(state)
        # Nothing is done twice but the step that failed, and what was reached at a change counts as committed.
        assert state.trace == [1, 2, 3, 4, 5, 6]
        assert job.joins == [(CHANGED, 2), (CHANGED, 3), (LOST, 3)]
        assert state.calls == ["sync from 0", "reset", "reset", "restore", "reset"], state.calls
        seen = []
        state.on_hosts_updated = lambda *arguments: seen.append(arguments)
        job.changes = [1]
        with raises(HostsUpdatedInterrupt):
            state.commit()
        assert len(seen) == 1 and seen[0][1] == 3


@contextlib.contextmanager
def state_folder():
    """Of all ranks, as --state-dir has it."""
    folder = ddl.broadcast_object(tempfile.mkdtemp() if RANK == 0 else None)
    os.environ.update(DDL_ELASTIC_STATE_DIR=f"{folder}/made", DDL_ELASTIC_STATE_INTERVAL="2")
    try:
        yield f"{folder}/made"
    finally:
        del os.environ["DDL_ELASTIC_STATE_DIR"]
        ddl.barrier()
        if RANK == 0:
            shutil.rmtree(folder)


def torch_state(rows=3):
    model = torch.nn.Linear(1, rows)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    return TorchState(model, optimizer, sampler=ElasticSampler(range(50)), epoch=0)


@ddl.elastic.run
def train_for_epochs(state, job, epochs, drains_in=None):
    while state.epoch < epochs:
        state.optimizer.zero_grad()
        state.model(torch.ones(2, 1)).sum().backward()
        state.optimizer.step()
        state.sampler.record_batch(0, 2)
        state.epoch += 1
        job.changes = [job.DDL_ELASTIC_DRAINS] if state.epoch == drains_in else []
        state.commit()


def test_state_of_an_earlier_job():
    with state_folder() as folder, elastic_job() as job:
        whole = torch_state()
        train_for_epochs(whole, job, 4)
        assert os.listdir(folder) == [] if RANK == 0 else True  # its work is done
        torch.manual_seed(0)
        first, second = torch_state(), torch_state()
        with raises(SystemExit, "119"):
            train_for_epochs(first, job, 4, drains_in=3)
        ddl.barrier()
        assert RANK > 0 or os.listdir(folder) == ["ddl-state.pickle"]
        with raises(SystemExit, "119"):
            train_for_epochs(second, job, 9, drains_in=5)
        assert (second.epoch, second._commits) == (5, 5)
        assert second.sampler.state_dict()["done"] == 5 * 2 * SIZE
        if RANK == 0:
            with raises(ddl.InvalidArgument, "is the state of another program", "remove it"):
                StateFile(folder).read(torch_state(rows=4)._layout())
        # Momentum goes on: two more steps of the first one lead there, too.
        train_for_epochs(first, job, 5)
        for here, there in zip(first.model.parameters(), second.model.parameters()):
            assert torch.equal(here, there)


def test_folder_of_one_job():
    with state_folder() as folder, elastic_job() as job:

        @ddl.elastic.run
        def train(state):
            if RANK == 0:
                with patch("ddl._state_file._LOCK_SECONDS", 0.1), raises(ddl.InvalidArgument, "used by another job"):
                    StateFile(folder).open()
            if len(job.joins) < 2:
                raise HorovodInternalError

        train(ObjectState(step=0))
        if RANK == 0:
            StateFile(folder).open()  # the job is over


def test_files_that_are_no_state():
    if RANK > 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = StateFile(folder)
        file.open()
        assert file.read([]) is None
        for content in (b"", b"rubbish", pickle.dumps(3), pickle.dumps({"format": 0})):
            with open(f"{folder}/ddl-state.pickle", "wb") as stream:
                stream.write(content)
            with raises(ddl.InvalidArgument, "remove it to begin anew"):
                file.read([])
        file.write(["a"], 7, {"b": 1})
        assert file.read(["a"]) == (7, {"b": 1})
        # A state that cannot be written leaves the earlier one.
        with raises(Exception):
            file.write(["a"], 8, lambda: None)
        assert file.read(["a"]) == (7, {"b": 1}) and os.listdir(folder) == ["ddl-state.pickle"]
        file.check(["a"], {"b": 2})
        with raises(ddl.InvalidArgument, "the state cannot be written"):
            file.check(["a"], lambda: None)
        assert file.read(["a"]) == (7, {"b": 1}) and os.listdir(folder) == ["ddl-state.pickle"]
        # Two jobs would take each other's state.
        told, holder = io.StringIO(), f"process {os.getpid()} of this host"
        with patch("ddl._state_file._LOCK_SECONDS", 0.1), contextlib.redirect_stderr(told):
            with raises(ddl.InvalidArgument, f"used by another job, which runs now ({holder})"):
                StateFile(folder).open()
        assert told.getvalue() == f"ddl: {folder} is used by {holder}; waiting 0.1 s for its end\n"
        file.close()
        StateFile(folder).open()
        assert StateFile(folder).read(["a"]) == (7, {"b": 1})
        later = StateFile(f"{folder}/none")
        later.write_later(["a"], 4, {})
        later._writer.join()
        assert not os.path.exists(f"{folder}/none") and not later.is_writing()  # it has said so, and goes on


def test_holder():
    if SIZE == 1:
        return
    with elastic_job() as job:
        state = Counted(step=0)

        @ddl.elastic.run
        def train(state):
            while state.step < 4:
                state.step += 1
                state.commit()
                if state.step == 2 and not job.joins:
                    raise HostsUpdatedInterrupt(True)
            return state.trace

        def be_new():
            # Rank 0 is started anew in the place of one that was lost; the last rank has lost its last commit.
            if RANK == 0:
                state._commits, state._syncs, state.step, state.trace = 0, 0, 0, []
            else:
                state.trace = ["of rank 1" if RANK == 1 else "of another one"]

        state.register_reset_callbacks([be_new])
        assert train(state) == ["of rank 1"]
        assert state.calls[-1] == "sync from 1" and (state._commits, state._syncs) == (4, 0)
        assert job.joins == [(CHANGED, 2)]


def test_failures_while_ranks_begin():
    for where in ("restore", "join", "callback", "sync"):
        calls, failures = [], []

        def fail(here):
            if here == where and calls and len(failures) < 2:
                failures.append(here)
                raise ddl.PeerLost(here)

        class Failing(Counted):
            def restore(self):
                fail("restore")
                super().restore()

            def sync(self, root_rank=0):
                fail("sync")
                super().sync(root_rank)

            def reset(self):
                super().reset()
                if where == "sync":
                    self._commits = self._syncs = 0

        with elastic_job() as job:
            if where == "join":
                job.refusals = [job.DDL_ERROR_PEER_LOST, job.DDL_ERROR_TIMEOUT]

            @ddl.elastic.run
            def train(state):
                calls.append(state.rank)
                if len(calls) == 1:
                    raise HorovodInternalError
                return "done"

            state = Failing()
            state.register_reset_callbacks([lambda: fail("callback")])
            assert train(state) == "done" and calls == [0, 0], where
            assert failures == ([] if where == "join" else [where] * 2) and job.refusals == []
            assert {reason for reason, _ in job.joins} == {LOST}, job.joins
            assert {commits for _, commits in job.joins} == {0}  # a job that does not advance is seen to be one
            assert len(job.joins) == (3 if where in ("callback", "sync") else 1), job.joins


def test_ends():
    with elastic_job() as job:

        @ddl.elastic.run
        def train(state, error):
            if not job.joins:
                raise error

        for error in (
            ddl.Mismatch("m"), ddl.InvalidArgument("i"), ddl.Interrupted("b"), ddl.Error("s", "system"), KeyError("k"),
        ):
            with raises(type(error)):
                train(Counted(), error)
        assert job.joins == [] and job.aborts == [(1, "m"), (1, "i")]
        # That joining is aborted ends the job.
        job.refusals = [job.DDL_ERROR_ABORTED]
        with raises(ddl.Aborted):
            train(Counted(), HorovodInternalError())
        assert job.joins == [] and not ddl.is_initialized()
    hvd.init()


def test_states_that_differ():
    if SIZE == 1:
        return
    with elastic_job():
        train = ddl.elastic.run(lambda state: None)
        last = f"the state of rank {SIZE - 1} is not like that of rank 0"
        with raises(ddl.Mismatch, f"{last}: it has the value b instead of the value a"):
            train(ObjectState(**{"b" if RANK == SIZE - 1 else "a": 1}))
        with raises(ddl.Mismatch, f"{last}: it has nothing instead of the value a"):
            train(ObjectState(**{} if RANK == SIZE - 1 else {"a": 1}))
        with raises(ddl.Mismatch, f"{last}: it has weight: float32 [2, 4] in model instead of weight: float32 [2, 3]"):
            train(TorchState(torch.nn.Linear(4 if RANK == SIZE - 1 else 3, 2)))
        with raises(ddl.Mismatch, "8 samples, shuffle=True, seed=1 in sampler instead of 8 samples"):
            train(TorchState(sampler=ElasticSampler(range(8), seed=int(RANK == SIZE - 1))))


def test_copies_take_turns():
    """Memory is used again, but never that of the last copy, nor of one that is being written to a file."""
    model = torch.nn.Linear(2, 2)
    handler = hvd.elastic.ModelStateHandler(model)
    weights = []
    for value, is_lent in ((1, False), (2, False), (3, True), (4, False), (5, False)):
        torch.nn.init.constant_(model.weight, value)
        handler.save()
        weights.append((handler.saved() if is_lent else vars(handler))["_saved"]["weight"])
    assert weights[2] is weights[0] and weights[3] is weights[1] and weights[4] is not weights[2]
    assert [float(one[0, 0]) for one in weights[2:]] == [3, 4, 5]
    handler.restore()
    assert float(model.weight[0, 0]) == 5


def test_copies_are_deep():
    state = ObjectState(history=[1], nested={"a": [2]})
    state.other = [3]
    state.history.append(4)
    state.nested["a"].append(5)
    state.other.append(6)
    state.restore()
    assert (state.history, state.nested, state.other) == ([1], {"a": [2]}, [3, 6])
    state.history.append(7)
    state.restore()
    assert state.history == [1]


def network():
    torch.manual_seed(RANK)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))


def step(model, optimizer, number):
    torch.manual_seed(number * 100 + RANK)
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):  # where matrices are multiplied
        loss = model(torch.randn(5, 3)).pow(2).sum()
    loss.backward()
    optimizer.step()


def test_torch_state():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    state = TorchState(model, optimizer, best=[1.0], epoch=0)
    assert state.model is model and state.optimizer is optimizer
    before = copy.deepcopy(model.state_dict())
    step(model, optimizer, 0)
    state.restore()  # the optimizer had no state
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    assert not optimizer.state and all(one.grad is None for one in model.parameters())
    step(model, optimizer, 0)
    state.save()
    parameter = next(model.parameters())
    saved, moment = copy.deepcopy(optimizer.state_dict()), optimizer.state[parameter]["exp_avg"]
    optimizer.param_groups[0]["lr"] = 0.5
    for _ in range(2):
        step(model, optimizer, 1)
        state.restore()
        now = optimizer.state_dict()
        assert now["param_groups"] == saved["param_groups"]
        for number, values in saved["state"].items():
            for name, value in values.items():
                assert torch.equal(torch.as_tensor(value), torch.as_tensor(now["state"][number][name])), name
    assert optimizer.state[parameter]["exp_avg"] is moment  # in place
    # An assignment saves.
    state.best.append(2.0)
    other = network()
    state.model = other
    with torch.no_grad():
        other[0].weight.zero_()
    state.restore()
    assert state.model is other and other[0].weight.any() and state.best == [1.0]
    later = TorchState(extra=None)
    later.extra = network()
    with torch.no_grad():
        later.extra[0].weight.zero_()
    later.restore()
    assert isinstance(later.extra, torch.nn.Module) and later.extra[0].weight.any()


def test_schedulers_and_scalers():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedules = torch.optim.lr_scheduler
    plain, plateau = schedules.StepLR(optimizer, 1), schedules.ReduceLROnPlateau(optimizer, patience=0)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    state = TorchState(model, optimizer, plain=plain, plateau=plateau, scaler=scaler)
    for _ in range(2):
        optimizer.step()
        plain.step()
        plateau.step(1.0)
        plateau.step(1.0)
        assert optimizer.param_groups[0]["lr"] < 0.1
        state.restore()
        assert optimizer.param_groups[0]["lr"] == 1.0 and plain.last_epoch == 0 and plateau.last_epoch == 0
    assert state.plain is plain and plain.optimizer is optimizer
    state.sync()


def test_registry():
    class Value:
        def __init__(self):
            self.number = 1

    class ValueHandler(hvd.elastic.StateHandler):
        def save(self):
            self.saved = self.value.number

        def restore(self):
            self.value.number = self.saved

        def sync(self):  # as Horovod's
            self.value.number = hvd.broadcast_object(self.value.number)
            self.save()

    registry = get_handler_registry()
    set_handler_registry([*registry, (Value, ValueHandler)])
    try:
        state = TorchState(value=Value())
    finally:
        set_handler_registry(registry)
    state.value.number = RANK + 2
    state.sync()
    state.value.number = 9
    state.restore()
    assert state.value.number == 2


def train_network(fails):
    """A network after 12 steps. fails: at some of them, in the middle of gradients that are on their way."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    state = TorchState(model, optimizer, step=0, failed=0)
    with elastic_job() as job:

        @hvd.elastic.run
        def train(state):
            while state.step < 12:
                if fails and state.step == 4 + len(job.joins):
                    # Half of the gradients are submitted, and one by its own name.
                    hvd.allreduce_async(torch.ones(3), name="one")
                    ddl.allreduce_async(numpy.ones(3), "nobody waits for it")
                    model[2](torch.ones(1, 4)).sum().backward()
                    raise HorovodInternalError
                assert fails or not job.joins
                assert not optimizer._ddl.open and not _horovod._open
                step(model, optimizer, state.step)
                assert hvd.allreduce(torch.ones(1), name="one", op=hvd.Sum).item() == SIZE
                state.step += 1
                if state.step % 2 == 0:
                    state.commit()

        train(state)
        assert len(job.joins) == (8 if fails else 0), job.joins
    return model


def test_training_is_the_same_after_failures():
    undisturbed, failed = train_network(False), train_network(True)
    for name, one in undisturbed.state_dict().items():
        assert torch.equal(one, failed.state_dict()[name]), name
    weights = hvd.allgather_object(failed[0].weight.tolist())
    assert weights == weights[:1] * SIZE


def test_optimizer_whose_set_grows_and_shrinks():
    if SIZE == 1:
        return
    model = torch.nn.Linear(1, 1, bias=False)
    real = _Gradients._has_others

    def gradient():
        optimizer.zero_grad()
        model(torch.full((1, 1), float(RANK))).sum().backward()
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()
        return model.weight.grad.item()

    try:
        _Gradients._has_others = lambda self: False
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0))
        state = TorchState(model, optimizer)
        assert gradient() == RANK
        _Gradients._has_others = real
        state.on_reset()
        assert gradient() == (SIZE - 1) / 2
        _Gradients._has_others = lambda self: False
        state.on_reset()
        assert gradient() == RANK
    finally:
        _Gradients._has_others = real


def test_process_sets_of_init():
    if SIZE < 3:
        return
    hvd.shutdown()
    pair = hvd.ProcessSet([0, 1])
    hvd.init(process_sets=[pair])
    with elastic_job() as job:

        @hvd.elastic.run
        def train(state):
            if pair.included():
                assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=pair).item() == 2
            if not job.joins:
                raise HorovodInternalError

        train(ObjectState())
        assert pair.process_set_id == 1
    hvd.shutdown()
    hvd.init()
    assert pair.process_set_id is None


def test_sampler_in_a_state():
    sampler = ElasticSampler(range(20))
    state = TorchState(sampler=sampler)
    with elastic_job():
        sampler.record_batch(0, 1 + RANK)
        state.commit()  # ranks may have recorded differently only at an end; the most counts
        assert sampler.state_dict() == {"epoch": 0, "done": min(20, SIZE * SIZE)}
        sampler.set_epoch(3)
        state.restore()
        assert sampler.state_dict() == {"epoch": 0, "done": min(20, SIZE * SIZE)}
        sampler.set_epoch(RANK)
        state.sync(SIZE - 1)
        assert sampler.epoch == SIZE - 1


if __name__ == "__main__":
    run(globals(), RANK)
