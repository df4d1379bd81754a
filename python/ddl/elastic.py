"""Training whose ranks go on when one is lost, and take in new ones: Horovod's names, which need no framework.

    import ddl
    from ddl import elastic

    @elastic.run
    def train(state):
        while state.step < 1000:
            ...                        # one step, which changes what the state has
            state.step += 1
            if state.step % 10 == 0:
                state.commit()

    ddl.init()
    train(elastic.ObjectState(step=0, weights=weights))

Start it by ``ddlrun --elastic continue``. If a rank is lost, the calls of the others fail. run() takes their states
back to the last commit, which is in their own memory, joins the next generation of the job, and calls the function
again. Ranks that are new begin with the state of the others. In a job that is not elastic, the function is called once.

The number of ranks may be another one in each call of the function, so ask ddl.rank() and ddl.size() in it.

With ``ddlrun --state-dir DIR``, SIGUSR1 or SIGTERM at ddlrun ends the job after the next commit: rank 0 writes the state
to DIR, and all ranks exit with 119. The next job with that folder goes on from there.

``ddl.torch.elastic`` has states of modules and optimizers of PyTorch, ``ddl.tensorflow.elastic`` of variables of
TensorFlow, and ``ddl.keras.elastic`` of models of Keras.
"""
from __future__ import annotations

import copy
import functools
import hashlib
import sys
import time
import traceback
from typing import Any, Callable, Sequence

from ddl import _context
from ddl._context import CHANGED, FIRST, LOST, abort, allgather, barrier, context, generation, rank, size
from ddl._horovod import drop_open
from ddl._kernels import failed_call
from ddl._library import ffi, lib
from ddl._objects import allgather_object, broadcast_object, numbers
from ddl._shards import Shard, Shards, ShardsLost, Version
from ddl._state_file import StateFile, first_difference, interval_of_job
from ddl.errors import Error, InvalidArgument, Mismatch, check, raise_losses_at_once

__all__ = ["HorovodInternalError", "HostsUpdatedInterrupt", "ObjectState", "Shard", "State", "generation", "run"]

# A program that catches it catches all errors of libddl. One that raises it makes its rank begin anew at the last
# commit, and with it the others.
HorovodInternalError = Error

_MIXED = 3  # Horovod's number for hosts that were added and removed


class HostsUpdatedInterrupt(RuntimeError):
    """Ranks wait to join, or hosts are to leave: all ranks raise it at the same step. run() handles it.

    skip_sync: not used. The ranks agree on whether any of them needs the state of another.
    """

    def __init__(self, skip_sync: bool = False):
        super().__init__(skip_sync)
        self.skip_sync = skip_sync


class State:
    """What a training has reached. A class that derives from it says how it is saved, restored and shared.

    Ranks that count the same commits and syncs have saved the same state: save() is for commit() and sync() to call.
    """

    def __init__(self) -> None:
        self._commits = 0  # made by this process, or taken over
        self._syncs = 0  # by run(), since the last commit
        self._reset_callbacks: list[Callable[[], None]] = []
        self._file: StateFile | None = None
        self._shards: Shards | None = None  # in an elastic job

    def save(self) -> None:
        """Copies the state to this process's memory. Later changes of the state must not change the copy."""
        raise NotImplementedError

    def restore(self) -> None:
        """Makes the state what save() has copied last. The process may have left the job."""
        raise NotImplementedError

    def sync(self, root_rank: int = 0) -> None:
        """Gives all ranks the state of root_rank, and saves it. Collective."""
        raise NotImplementedError

    def saved(self) -> Any:
        """What save() has copied last, for a file: pickle must be able to write it, and nothing changes it later."""
        raise NotImplementedError(f"{type(self).__name__} has no saved(), which ddlrun's --state-dir needs")

    def take(self, saved: Any) -> None:
        """Makes the state, and its copy, what saved() was in an earlier job."""
        raise NotImplementedError(f"{type(self).__name__} has no take(), which ddlrun's --state-dir needs")

    def reset(self) -> None:
        """Adapts the state to another rank and number of ranks. Called before the callbacks."""

    def commit(self) -> None:
        """Saves the state, to which the ranks return if one is lost, and calls check_host_updates(). Collective.

        Call it after a step, when no tensor is on its way, as often on all ranks.
        """
        self._agree()
        self._keep_shards()
        change = self._pending_change()
        self._save_and_count()
        interval = interval_of_job()
        if interval > 0 and self._commits % interval == 0:
            shards = self._shards_of_all()
            if self._file is not None and not self._file.is_writing():
                self._file.write_later(self._layout(), self._commits, (self.saved(), shards))
        self._follow(change)

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt, on all ranks or on none, if ranks wait to join or hosts are to leave.

        Collective, as commit(), but saves the state only if it raises. So nothing is lost by a planned change.
        """
        change = self._pending_change()
        if change != lib.DDL_ELASTIC_STAYS:
            self._agree()
            self._keep_shards()
            if self._shards is not None:
                barrier()  # a copy counts when all ranks have made theirs
            self._save_and_count()
            self._follow(change)

    def register_reset_callbacks(self, callbacks: Sequence[Callable[[], None]]) -> None:
        """Adds functions to call in each new generation: after joining, and before ranks compare their states.

        Ranks that are new do not call them. So what they do together with other ranks, such as making a process set,
        the program must do at its beginning, too, between init() and the function of run().
        """
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called by run() in each new generation: reset(), and the callbacks."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Called before HostsUpdatedInterrupt is raised, for classes that derive from this. Does nothing.

        timestamp: seconds since 1970. update_res: 3, Horovod's number for hosts that were added and removed.
        """

    def _layout(self) -> list[str]:
        """What the states of all ranks have in common, line by line. What changes in training is not in it."""
        return [f"the class {type(self).__qualname__}"]

    def _agree(self) -> None:
        """Before each save: what ranks may have counted differently becomes the same on all. Collective."""

    def _keep_shards(self) -> None:
        """As those of the next commit. Collective."""
        if self._shards is not None:
            self._shards.keep((self._commits + 1, 0))

    def _shards_of_all(self) -> list[bytes] | None:
        """Those of the last commit. Collective."""
        return None if self._shards is None else self._shards.of_all((self._commits, self._syncs))

    def _save_and_count(self) -> None:
        """When all ranks have come so far that the next commit counts."""
        self.save()
        self._set_version((self._commits + 1, 0))

    def _set_version(self, version: Version) -> None:
        self._commits, self._syncs = version
        if self._shards is not None:
            self._shards.keep_only(version)

    def _pending_change(self) -> int:
        change = ffi.new("int32_t *")
        check(lib.ddl_elastic_check(context(), change))
        return int(change[0])

    def _follow(self, change: int) -> None:
        """Of all ranks, at the same step, with a state that is saved."""
        if change == lib.DDL_ELASTIC_DRAINS:
            shards = self._shards_of_all()
            if self._file is not None:
                self._file.write(self._layout(), self._commits, (self.saved(), shards))
                self._file.close()
            sys.exit(lib.DDL_ELASTIC_EXIT_DRAINED)
        if change == lib.DDL_ELASTIC_CHANGES:
            self.on_hosts_updated(time.time(), _MIXED)
            raise HostsUpdatedInterrupt()

    def _begin_file(self) -> None:
        """Of rank 0, which goes on from the file of an earlier job. It is new if it has not saved its state yet."""
        if rank() > 0 and self._file is not None:
            self._file.close()
            self._file = None
        if rank() > 0 or self._file is not None:
            return
        self._file = StateFile.of_job()
        if self._file is None:
            return
        found = None
        try:
            self._file.open()
            if self._commits == 0:
                found = self._file.read(self._layout())
                self._file.check(self._layout(), self.saved())
        except (OSError, InvalidArgument) as error:
            # The state is that of all ranks: none of them can go on without it.
            abort(1, f"--state-dir: {error}")
        if found is not None:
            self._commits = found[0]
            self._take_content(found)

    def _take_content(self, found: tuple[int, Any]) -> None:
        """What a file has. The shards are those of all ranks, and restore() will give them to these."""
        commits, (saved, shards) = found
        self.take(saved)
        if self._shards is not None:
            self._shards.take((commits, 0), shards)

    def _share_shards(self, newest: Version) -> None:
        """Gives each rank what is its own, and keeps it as the next version. Collective."""
        if self._shards is None:
            return
        if newest > (0, 0):
            try:
                self._shards.restore(newest)
            except ShardsLost as lost:
                self._go_back_to_file(lost)
        self._shards.keep((newest[0], newest[1] + 1))
        barrier()

    def _go_back_to_file(self, lost: ShardsLost) -> None:
        """Nobody has all of the last commit: the file may be older. Collective."""
        found = None
        if self._file is not None:
            try:
                found = self._file.read(self._layout())
            except (OSError, InvalidArgument) as error:
                abort(1, f"{lost}; --state-dir: {error}")
        commits = broadcast_object(None if found is None else found[0])
        if commits is None:
            abort(1, f"{lost}, and there is no file of an earlier commit (ddlrun --state-dir DIR --state-interval N)")
        if found is not None:
            print(f"ddl: {lost}; going back to commit {commits} in {self._file.folder}", file=sys.stderr, flush=True)
            self._take_content(found)
        sync_from(self, 0)
        self._shards.restore((commits, 0))


class ObjectState(State):
    """Values by names, such as ``ObjectState(epoch=0, batch=0)``, which become attributes.

    Copies are deep: a list or array that is changed in place is restored, too. Other attributes are the rank's own, and
    are lost with it, unless they are a Shard.
    """

    def __init__(self, **values: Any):
        super().__init__()
        shards = {name: value for name, value in values.items() if isinstance(value, Shard)}
        self._names = [name for name in values if name not in shards]
        self._shards = Shards(shards) if shards else None
        vars(self).update(values)
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self._values())

    def restore(self) -> None:
        vars(self).update(copy.deepcopy(self._saved))

    def sync(self, root_rank: int = 0) -> None:
        vars(self).update(broadcast_object(self._values(), root_rank))
        self.save()

    def saved(self) -> Any:
        return self._saved

    def take(self, saved: Any) -> None:
        self._saved = saved
        ObjectState.restore(self)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def _layout(self) -> list[str]:
        shards = [] if self._shards is None else self._shards.layout()
        return super()._layout() + [f"the value {name}" for name in sorted(self._names)] + shards


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """A training function whose first argument is a State, and that goes on when a rank is lost.

    It is called when the process has joined the job, for which init() is called if it has not been, and when all ranks
    have the same state. It is called again

    - after PeerLost, Timeout or Aborted, and after a HorovodInternalError of the program. Then the state is restored.
      So it is after any error if a call of libddl has failed with one of these in a function that a framework runs,
      such as a step of TensorFlow: the error is the framework's own.
    - after HostsUpdatedInterrupt; the state is not restored.

    Mismatch and InvalidArgument end the whole job, because its ranks would come to the same again; other errors end the
    rank, without which the others go on. A failure while the process joins again, in a callback, or while ranks share
    their states, is handled alike. When the function returns, the job does not change any more, and its result is
    returned. All ranks return from it, or the job ends with an error.

    A program makes no collective calls between init() and this one, except those of register_reset_callbacks(): new
    ranks would wait in them for the others.
    """

    @functools.wraps(function)
    def elastic(state: State, *arguments: Any, **named: Any) -> Any:
        _context.init()
        goes_on = _context.is_elastic()
        if goes_on:
            raise_losses_at_once()
        else:
            state._shards = None  # nobody would need a copy
        reason = FIRST
        while True:
            try:
                if reason != FIRST:
                    _join_again(state, reason)
                if goes_on:
                    state._begin_file()
                _share(state)
                result = function(state, *arguments, **named)
                break
            # Nothing else is done here: the error holds what the function has used.
            except HostsUpdatedInterrupt:
                if not goes_on:
                    raise
                reason = CHANGED
            except Exception as error:
                if not goes_on or not _is_survived(error):
                    if goes_on:
                        _end_job_if_alike(error)
                    raise
                reason = LOST
        if goes_on:
            check(lib.ddl_elastic_finished(context()))
            if state._file is not None:
                state._file.remove()
        return result

    return elastic


def _own(error: Exception) -> Error | None:
    """Also of an error that a framework raises because a call of libddl has failed in one of its functions."""
    return error if isinstance(error, Error) else failed_call()


def _is_survived(error: Exception) -> bool:
    own = _own(error)
    return own is not None and _context.is_survived(own)


def _end_job_if_alike(error: Exception) -> None:
    """If all ranks would come to the same again."""
    own = _own(error)
    if isinstance(own, (Mismatch, InvalidArgument)):
        traceback.print_exc()
        abort(1, str(own))


def sync_from(one: Any, root_rank: int) -> None:
    """Calls sync() of a state or a handler, which may be a program's own and know rank 0 alone, as Horovod's."""
    if root_rank == 0:
        one.sync()
    else:
        one.sync(root_rank=root_rank)


def _join_again(state: State, reason: int) -> None:
    """The state is restored between two generations: then no call writes into what it has."""
    _context.leave()
    drop_open()
    if reason == LOST:
        state.restore()
    _context.join(reason, state._commits)
    state.on_reset()


def _share(state: State) -> None:
    """Gives all ranks the same state. Collective.

    If all have made the same number of commits, each has the state of the last one in its own memory, and nothing is
    sent. Else the lowest of the ranks with the most commits sends its state. Syncs are counted, too: after a failure in
    the middle of one, the ranks that have received the state are told from the others. A job begins with the state of
    rank 0.
    """
    layout = state._layout()
    digest = hashlib.sha256("\n".join(layout).encode()).digest()
    own, everyone = numbers(3), numbers(3 * size())
    own[0], own[1], own[2] = state._commits, state._syncs, int.from_bytes(digest[:8], "little", signed=True)
    allgather(own, out=everyone)
    commits, syncs, digests = (everyone.tolist()[i::3] for i in range(3))
    if len(set(digests)) > 1:
        raise _difference(allgather_object(layout))
    versions = list(zip(commits, syncs))
    newest = max(versions)
    if newest > min(versions) or newest == (0, 0):
        sync_from(state, versions.index(newest))
    elif state._shards is None:
        return
    state._share_shards(newest)
    state._set_version((newest[0], newest[1] + 1))


def _difference(layouts: list[list[str]]) -> Mismatch:
    """The first one between rank 0 and another rank."""
    other = next(i for i, layout in enumerate(layouts) if layout != layouts[0])
    here, there = first_difference(layouts[other], layouts[0])
    return Mismatch(
        f"the state of rank {other} is not like that of rank 0: it has {here} instead of {there}; make the states of "
        "all ranks alike"
    )
