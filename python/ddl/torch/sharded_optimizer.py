"""An optimizer whose state is divided among the ranks: ZeRO-1 (Rajbhandari et al. 2020,
https://arxiv.org/abs/1910.02054).

The gradients of a bucket are combined so that each rank gets the mean of its own slice alone. It updates the slice, for
which alone it has the optimizer's state, and sends it to the others. This moves as much as an allreduce does.
"""
from __future__ import annotations

from typing import Any, Callable, Iterable

import torch

from ddl._horovod import ProcessSet, global_process_set
from ddl._shards import Shard
from ddl.torch._sharded_gradients import VERSION, _ShardedGradients
from ddl.torch._slices import check_elementwise, shard_of
from ddl.torch.optimizer import _DistributedOptimizer


class _ShardedOptimizer(_DistributedOptimizer):
    """The functions that an optimizer has instead of its own."""

    _by_scaler = False  # step() is called by a ShardedGradScaler

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """PyTorch's own scaler, which looks at this rank's gradients alone, is to call step(), which refuses."""
        return not self._by_scaler

    def synchronize(self) -> None:
        if not self._ddl.is_synchronized:
            self._ddl.synchronize()

    def step(self, closure: Callable[[], Any] | None = None, **given: Any) -> Any:
        if given or hasattr(self, "found_inf"):
            raise RuntimeError(
                "a GradScaler sees infinities of its own rank alone, so the ranks would part ways; use "
                "ddl.torch.ShardedGradScaler"
            )
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.synchronize()
        self._ddl.is_synchronized = False
        self._ddl.consolidated = None
        with torch.no_grad():
            self._ddl.flat.update(waits=not self._ddl.overlaps)
        return loss

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        self._ddl.is_synchronized = False
        return _DistributedOptimizer.zero_grad(self, *arguments, **named)

    def wait_for_parameters(self) -> None:
        """Returns when the parameters have the values of the last step: for programs that give a model, and use its
        parameters otherwise than by calling its modules."""
        self._ddl.flat.receive()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Makes the norm of all gradients, combined, at most max_norm, and returns what it was. Collective.

        As torch.nn.utils.clip_grad_norm_() does on ranks that have all gradients. norm_type: 2, or infinity.
        """
        self.synchronize()
        norm = self._ddl.norm(float(norm_type))
        scale = max_norm / (norm + 1e-6)
        if not scale >= 1.0:  # nor if it is no number
            for gradient in self._ddl.flat.own_gradients():
                gradient.mul_(scale)
        return torch.tensor(norm)

    def shard_state_dict(self) -> dict[str, Any]:
        """This rank's part of the state, by the names of parameters. Not collective. Tensors are not copied.

        load_state_dict() takes a list of those of all ranks, of whatever number.
        """
        return {
            "ddl_shard": VERSION, "rank": self._ddl.rank(), "ranks": self._ddl.ranks(),
            "param_groups": self._ddl.group_options(self), "shards": shard_of(self._ddl.flat.optimizers),
        }

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Sends the state of all ranks to the rank of the process set with this number, whose state_dict() has it
        from then on, until the next step. Collective."""
        self._ddl.consolidated = None
        shards = self._ddl.gather(shard_of(self._ddl.flat.optimizers), to)
        if shards is not None:
            self._ddl.consolidated = self._ddl.whole_state(self, shards)

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as the optimizer of one process has it, and which that can load."""
        if not self._ddl.is_shared:
            return self._ddl.whole_state(self, [shard_of(self._ddl.flat.optimizers)])
        if self._ddl.consolidated is None:
            raise RuntimeError(
                "the state of this optimizer is divided among the ranks: save shard_state_dict() on each rank, or call "
                "consolidate_state_dict(to=0) on all ranks before state_dict() on rank 0"
            )
        return self._ddl.consolidated

    def load_state_dict(self, state_dict: Any) -> None:
        """Takes its part of what state_dict() has given, of this optimizer or of one that is not sharded, or of a list
        of what shard_state_dict() has given on all ranks of any number. Not collective: each rank gives it."""
        self._ddl.begin_anew()
        self._ddl.load(self, state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise RuntimeError("parameters cannot be added to a sharded optimizer; add them before it is sharded")

    def shard(self) -> Shard:
        """For an ObjectState of an elastic job; a TorchState of the optimizer has it anyway."""
        return _OptimizerShard(self)


class _OptimizerShard(Shard):
    """A value that lies in the optimizer."""

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer
        self.reshard = lambda values, rank, size: values

    @property
    def value(self) -> Any:
        return self._optimizer.shard_state_dict()

    @value.setter
    def value(self, value: Any) -> None:
        self._optimizer.load_state_dict(value)


def ShardedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    backward_passes_per_step: int = 1,
    process_set: ProcessSet = global_process_set,
    bucket_cap_mb: float = 8.0,
    elementwise: bool = False,
    model: torch.nn.Module | None = None,
) -> torch.optim.Optimizer:
    """The same optimizer, whose step() uses the mean of the gradients of all ranks, and whose state is divided among
    them: of Adam, 8 bytes a parameter become 8 / ranks. All ranks of the set make it together.

    With optimizers that treat each element of a tensor by itself, parameters become what DistributedOptimizer makes of
    them, to the bit; others are refused. elementwise: an optimizer of your own is such a one. Parameters become views
    of buffers; those of 16 bits have a copy of 32 bits, which is what is updated. After step(), synchronize() or
    clip_grad_norm_(), a rank has the combined gradients of its own slices alone.

    model: its modules wait for their parameters when they are called, so that the ranks send them while the next
    forward pass begins. Without it, step() waits. See wait_for_parameters().
    """
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    if isinstance(optimizer, _DistributedOptimizer):
        raise ValueError("the optimizer is a DistributedOptimizer or sharded already")
    check_elementwise(optimizer, elementwise)
    own, overlaps = type(optimizer), model is not None
    gradients = _ShardedGradients(
        optimizer, named_parameters, backward_passes_per_step, process_set, bucket_cap_mb, overlaps
    )
    functions: dict[str, Any] = {}
    for base in (_DistributedOptimizer, _ShardedOptimizer):
        functions.update((name, value) for name, value in vars(base).items() if not name.startswith("__"))
    known = own.state_dict(optimizer) if optimizer.state else None
    optimizer.__class__ = type(own.__name__, (own, _ShardedOptimizer), functions)
    optimizer._ddl = gradients
    for name in ("step", "zero_grad"):  # see DistributedOptimizer()
        vars(optimizer).pop(name, None)
    if known is not None:  # of whole parameters
        gradients.load(optimizer, known)
        optimizer.state.clear()
    if model is not None:
        for module in model.modules():
            if any(True for _ in module.parameters(recurse=False)):
                # Also those of modules inside, which it may use without calling them, as nn.MultiheadAttention does.
                module.register_forward_pre_hook(gradients.flat.receive_for(list(module.parameters())))
        model._register_state_dict_hook(lambda *_: gradients.flat.receive())
    return optimizer
