"""The process group and the backend that PyTorch gets, and how it gets them."""
from __future__ import annotations

import inspect
import weakref
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

import ddl
from ddl.torch.distributed import launching
from ddl.torch.distributed.joining import check_place
from ddl.torch.distributed.members import Members
from ddl.torch.distributed.methods import Methods
from ddl.torch.distributed.versions import calls_backends
from ddl.torch.distributed.works import as_backend_error

DEVICES = ("cpu", "cuda")

if hasattr(torch._C._distributed_c10d, "Backend"):

    class Backend(Methods, torch._C._distributed_c10d.Backend):
        """What C++ calls for tensors of one type of device."""

        # C++ asks for these, and one that is not here would ask itself.
        supports_splitting = True
        supports_coalescing = False  # batch_isend_irecv() gives a work for each message
        supports_shrinking = False
        supports_reconfigure = False
        supports_window = False
        _supports_time_estimate = False

        def __init__(self, members: Members):
            torch._C._distributed_c10d.Backend.__init__(self, members.rank, members.size)
            self.members = members
            weakref.finalize(self, members.close).atexit = False

        def eager_connect_single_device(self, device: Any = None) -> None:
            """Nothing is left to connect."""

        def perform_nocolor_split(self, device: Any = None) -> None:
            """Groups are made by their members alone."""


class ProcessGroup(Methods, dist.ProcessGroup):
    """A group as the program has it.

    PyTorch would make a group around a backend, but its works could not be asked whether they are done, nor from which
    rank a message came. So this is the group, and its backends are for what C++ calls, and for its name.
    """

    def __init__(self, members: Members, store: Any):
        self.members = members
        if calls_backends():
            dist.ProcessGroup.__init__(self, store, members.rank, members.size)
            custom = dist.ProcessGroup.BackendType.CUSTOM
            self._set_default_backend(custom)
            self._backends = [Backend(members) for _ in DEVICES]
            for device, backend in zip(DEVICES, self._backends):
                self._register_backend(torch.device(device), custom, backend)
        else:
            dist.ProcessGroup.__init__(self, members.rank, members.size)
            if hasattr(self, "_register_backend"):
                # For C++ a group's name is that of its backend, which cannot be of Python here. Neither Python nor
                # functional collectives nor DistributedDataParallel call it.
                limit = timedelta(seconds=members.seconds(None))
                gloo = dist.ProcessGroupGloo(store, members.rank, members.size, limit)
                self._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)
        # Older versions say nothing when they drop a group.
        weakref.finalize(self, members.close).atexit = False

    def split_group(self, new_ranks: Any, timeout: Any = None, opts: Any = None, group_name: Any = None,
                    group_desc: Any = None, device_types: Any = None) -> ProcessGroup | None:
        if self.members.rank not in new_ranks:
            return None
        store = dist.PrefixStore(f"{group_name}/", self.get_group_store())
        limit = timeout or timedelta(seconds=self.members.seconds(None))
        ranks = [self.members.ranks[one] for one in new_ranks]
        place = new_ranks.index(self.members.rank), len(new_ranks)
        group = ProcessGroup(_members(store, group_name, *place, limit, ranks), store)
        group._set_group_name(group_name)
        group._set_group_desc(group_desc or "undefined")
        return group


def _is_one_of_several() -> bool:
    """Whether other devices have other backends in the group that is being made, as in "cpu:ddl,cuda:nccl". PyTorch
    does not tell that to those that it calls, so it is read where PyTorch has it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "_new_process_group_helper":
        frame = frame.f_back
    config = frame.f_locals.get("backend_config") if frame is not None else None
    return config is not None and len(set(config.get_device_backend_map().values())) > 1


def _members(store: Any, *how: Any) -> Members:
    try:
        return Members(store, *how)
    except ddl.Error as error:
        raise as_backend_error(error)


def _is_aborted(store: Any) -> bool:
    """Whether libddl makes no more calls, by an error that any rank had."""
    try:
        ddl.ProcessSet.by_members([ddl.rank()], "own", store).free()  # nothing else can go wrong with a set of one rank
    except ddl.Error:
        return True
    return False


def _ranks(options: Any) -> list[int] | None:
    """The members' ranks in libddl's job; None: PyTorch does not tell."""
    if not options.global_ranks_in_group:
        return list(range(ddl.size())) if options.group_size == ddl.size() else None
    default = dist.distributed_c10d._get_default_group()
    if isinstance(default, ProcessGroup):
        return [default.members.ranks[one] for one in options.global_ranks_in_group]
    return list(options.global_ranks_in_group) if dist.get_world_size() == ddl.size() else None


def create(options: Any, _: Any) -> Any:
    """What init_process_group() and new_group() call: makes a group, or a backend for a group of PyTorch's."""
    is_one_of_several = _is_one_of_several()
    if is_one_of_several and not calls_backends():
        raise ValueError(f"PyTorch {torch.__version__} has no groups in which some devices have the backend \"ddl\" "
                         "and others another: give init_process_group() or new_group() the name \"ddl\" alone")
    if not options.global_ranks_in_group:
        place = options.group_rank, options.group_size
        launching.init(options.store, *place, options.timeout)
        check_place(*place)
        if _is_aborted(options.store):
            # It was an error in an earlier group, and all ranks have it: begin anew.
            ddl.shutdown()
            launching.init(options.store, *place, options.timeout)
    elif options.group_size == dist.get_world_size():
        launching.init(options.store, dist.get_rank(), options.group_size, options.timeout)
    else:
        ddl.init()
    how = options.group_rank, options.group_size, options.timeout, _ranks(options)
    members = _members(options.store, options.group_id, *how)
    return Backend(members) if is_one_of_several else ProcessGroup(members, options.store)
