"""An optimizer that averages the gradients of all ranks while the backward pass goes on."""
from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import Any, Callable, Iterable
from weakref import ref

import torch

import ddl
from ddl._context import is_elastic
from ddl._horovod import (
    Adasum,
    Average,
    ProcessSet,
    broadcast_object,
    global_process_set,
    op_of,
    opened,
    raise_on_all,
    set_of,
    synchronize,
)
from ddl._library import lib
from ddl._tensors import Options
from ddl.errors import Mismatch
from ddl.torch._flat_gradients import FlatGradients
from ddl.torch._sparse import sparse_allreduce_async
from ddl.torch._tensors import TYPES, address, checked, stream_of
from ddl.torch.compression import Compression


class _Call:
    """The allreduce of a gradient, which is submitted in each step."""

    def __init__(self, name: str, tensor: torch.Tensor, **options: Any):
        checked(tensor)
        self.name = f"allreduce.{name}".encode()
        self.shape, self.dtype = tensor.shape, tensor.dtype
        self._count, self._type = tensor.numel(), TYPES[tensor.dtype]
        self._options = Options(tensor.shape, zeros_if_joined=True, **options)

    def submit(self, tensor: torch.Tensor, op: int, process_set: ProcessSet) -> int:
        place, stream = address(tensor), stream_of(tensor)
        arguments = (self.name, place, place, self._count, self._type, op)
        handle = self._options.submit(
            lib.ddl_allreduce_async, *arguments, process_set=set_of(process_set), stream=stream
        )
        return opened(handle, lambda: tensor, tensor, self.name, process_set)


# By id: a parameter, and what removes its hook, of the last optimizer that was made of it.
_hooks: dict[int, tuple[Any, Any]] = {}


class _Gradients:
    """The gradients of an optimizer's parameters: which are on their way, and how they are combined."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        named_parameters: Any,
        compression: Any,
        passes: int,
        op: Any,
        predivide: float,
        num_groups: int,
        groups: Any,
        sparse_as_dense: bool,
        process_set: ProcessSet,
        bucket_cap_mb: float | None,
    ):
        self.own = type(optimizer)
        self.compression = compression
        self.passes = passes
        self.op = op
        self.prescale, self.postscale = 1.0 / predivide, predivide
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        # Of all parameters that the program has named, and of the optimizer's.
        self.given_names = _given_names(named_parameters)
        self.names = _names(optimizer, self.given_names)
        if process_set.included() is None:
            set_of(process_set)  # says what is missing
        self.is_shared = self._has_others()
        self.group_of: dict[torch.Tensor, tuple[str, int]] = {}
        self._make_groups(num_groups, groups)
        self.left = {parameter: passes for parameter in self.names}
        # Of gradients on their way, what waits and returns the combined one; None: there is none.
        self.open: dict[torch.Tensor, Callable[[], torch.Tensor | None]] = {}
        self.calls: dict[torch.Tensor, _Call] = {}
        # Of parameters whose gradients have been sparse, how many of their dimensions are.
        self.sparse_dimensions: dict[torch.Tensor, int] = {}
        self.is_synchronized = False
        self.synchronizes = True
        self.flat = None if bucket_cap_mb is None else FlatGradients(self, bucket_cap_mb)
        self._hooked: list[Any] = []
        for parameter in self.names:
            self._hook(parameter)

    def _has_others(self) -> bool:
        # A rank outside the set trains by itself.
        return bool(self.process_set.included()) and self.process_set.size() > 1

    def _make_groups(self, num_groups: int, groups: Any) -> None:
        trained = [parameter for parameter in self.names if parameter.requires_grad]
        lists: list[list[torch.Tensor]] = []
        if groups is not None:
            lists = [list(group) for group in groups]
            if any(not isinstance(p, torch.Tensor) for group in lists for p in group):
                raise ValueError("groups is a list of lists of parameters")
            flat = [id(p) for group in lists for p in group]
            if len(set(flat)) != len(flat):
                raise ValueError("a parameter is in groups twice")
        elif num_groups > 0:
            # Of near-equal length, as the parameters follow each other on the first rank. In an elastic job, each rank
            # follows its own: a new rank makes its optimizer while the others go on with theirs.
            trained = self._as_on_first_rank(trained)
            count = max(min(num_groups, len(trained)), 1)
            share, more = divmod(len(trained), count)
            begin = 0
            for i in range(count):
                end = begin + share + (1 if i < more else 0)
                lists.append(trained[begin:end])
                begin = end
        known = {id(parameter): parameter for parameter in trained}
        for i, group in enumerate(lists):
            members = [known[id(p)] for p in group if id(p) in known]
            for parameter in members:
                self.group_of[parameter] = (f"group.{i}", len(members))

    def _as_on_first_rank(self, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
        """The parameters in the order of the first rank of the set. Collective."""
        if not self.is_shared or is_elastic():
            return parameters
        by_name = {self.names[parameter]: parameter for parameter in parameters}
        first = self.process_set.ranks[0]
        order = broadcast_object(list(by_name), first, process_set=self.process_set)
        problem = None
        for name in sorted(set(order) ^ set(by_name))[:1]:
            here, there = (ddl.rank(), first) if name in by_name else (first, ddl.rank())
            problem = Mismatch(
                f"parameter {name} is trained on rank {here} and not on rank {there}; "
                "make the models alike on all ranks"
            )
        raise_on_all(problem, self.process_set)
        return [by_name[name] for name in order]

    def add(self, parameters: list[torch.Tensor], group: int) -> None:
        """Parameters that the optimizer has got later, as its group of that number."""
        for i, parameter in enumerate(parameters):
            self.names[parameter] = (self.given_names or {}).get(parameter, f"allreduce.noname.{group}.{i}")
            self.left[parameter] = self.passes
            self._hook(parameter)

    def _hook(self, parameter: torch.Tensor) -> None:
        reference, hook = _hooks.pop(id(parameter), (lambda: None, None))
        if reference() is parameter:
            hook.remove()
        if not self.is_shared or not parameter.requires_grad:
            return
        # What accumulates the gradient calls the hook when the gradient is there. It must be kept.
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        _hooks[id(parameter)] = (ref(parameter), accumulator.register_hook(self._hook_of(parameter)))
        self._hooked.append(accumulator)

    def _hook_of(self, parameter: torch.Tensor) -> Callable[..., None]:
        def submit(*_: Any) -> None:
            if not self.is_shared:  # since the others were lost
                return
            left = self.left[parameter]
            if left <= 0 or parameter in self.open:
                raise AssertionError(
                    "Gradients were computed more than backward_passes_per_step times before call to step(). "
                    "Increase backward_passes_per_step to accumulate gradients locally."
                )
            self.left[parameter] = left - 1
            if left == 1:
                self.submit(parameter)

        return submit

    def submit(self, parameter: torch.Tensor) -> None:
        if self.flat is None or not self.flat.submit(parameter):
            self.submit_alone(parameter)

    def submit_alone(self, parameter: torch.Tensor) -> None:
        if not parameter.requires_grad:  # since it was frozen
            if parameter in self.group_of:
                self._submit_nothing(parameter, lambda: None)
            return
        gradient = parameter.grad
        if gradient.is_sparse:
            self.sparse_dimensions[parameter] = gradient.sparse_dim()
            if not self.sparse_as_dense:
                finish = sparse_allreduce_async(gradient, self.names[parameter], self.op, self.process_set)
                self._submit_nothing(parameter, finish)
                return
            gradient = gradient.to_dense()
        self._submit_dense(parameter, gradient)

    def _submit_dense(self, parameter: torch.Tensor, tensor: torch.Tensor) -> None:
        small, kept = self.compression.compress(tensor)
        if not small.is_contiguous():
            small = small.contiguous()
        number = self._submitted(parameter, small)
        self.open[parameter] = lambda: self.compression.decompress(synchronize(number), kept)

    def _submitted(self, parameter: torch.Tensor, tensor: torch.Tensor) -> int:
        call = self.calls.get(parameter)
        if call is None or call.shape != tensor.shape or call.dtype is not tensor.dtype:
            group, size = self.group_of.get(parameter, (None, 0))
            options = dict(prescale=self.prescale, postscale=self.postscale, group=group, group_size=size)
            call = self.calls[parameter] = _Call(self.names[parameter], tensor, **options)
        return call.submit(tensor, self.op.number, self.process_set)

    def _submit_nothing(self, parameter: torch.Tensor, then: Callable[[], torch.Tensor | None]) -> None:
        """Submits no elements by the parameter's name: its group counts them, and a rank with a dense gradient is
        told that ours is none."""
        number = self._submitted(parameter, parameter.detach().new_empty(0))

        def wait() -> torch.Tensor | None:
            synchronize(number)
            return then()

        self.open[parameter] = wait

    def _submit_missing(self) -> None:
        """The gradients that the pass has not computed, as zeros."""
        for parameter in self.names:
            if parameter in self.open:
                continue
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
                if parameter in self.sparse_dimensions:
                    parameter.grad = parameter.grad.to_sparse(self.sparse_dimensions[parameter])
            self.submit(parameter)
        if self.flat is not None:
            self.flat.break_up()

    def synchronize(self) -> None:
        """Submits what the pass has not computed, and waits for all gradients."""
        if self.is_shared:
            self._submit_missing()
        self._finish()
        self.is_synchronized = True

    def begin_anew(self) -> None:
        """As before the first pass of a step."""
        self._finish()
        self.is_synchronized, self.synchronizes = False, True

    def drop_open(self) -> None:
        """Forgets gradients that were on their way when this process left the job, and passes that it has counted."""
        self._clear_open()
        for parameter in self.left:
            self.left[parameter] = self.passes
        self.is_synchronized, self.synchronizes = False, True

    def begin_generation(self) -> None:
        """After the process has joined again: the set may have other ranks now, or there may be others at last."""
        self.drop_open()
        if self.process_set.included() is None:
            set_of(self.process_set)  # says what is missing
        self.is_shared = self._has_others()
        if not self._hooked:
            for parameter in self.names:
                self._hook(parameter)

    def _finish(self) -> None:
        """Waits for gradients on their way. Passes are counted from the first again."""
        failure = None
        for parameter, wait in self.open.items():
            try:
                reduced = wait()
            except Exception as error:  # the others have to be waited for, too
                failure = failure or error
                continue
            if reduced is not None:
                self._store(parameter, reduced)
        self._clear_open()
        for parameter in self.left:
            self.left[parameter] = self.passes
        if failure is not None:
            raise failure

    def _clear_open(self) -> None:
        self.open.clear()
        if self.flat is not None:
            self.flat.begin_anew()

    def _store(self, parameter: torch.Tensor, gradient: torch.Tensor) -> None:
        """Makes it the parameter's gradient, which stays sparse or dense."""
        if not parameter.grad.is_sparse:
            if gradient.data_ptr() != parameter.grad.data_ptr():
                parameter.grad.copy_(gradient)
        elif gradient.is_sparse:
            parameter.grad = gradient
        else:
            parameter.grad = gradient.to_sparse(parameter.grad.sparse_dim())

    def make_step(self, step: Callable[[], Any]) -> Any:
        """step: that of the optimizer itself, after synchronize()."""
        return step()


class _Deltas(_Gradients):
    """The same for Adasum: each rank makes a step with its own gradients, and what these steps have changed is
    combined. Hooks only count the passes."""

    starts: dict[torch.Tensor, torch.Tensor]  # the parameters before the step

    def submit(self, parameter: torch.Tensor) -> None:
        pass

    def synchronize(self) -> None:
        """Gradients stay with their rank."""
        self._finish()
        self.is_synchronized = True

    def make_step(self, step: Callable[[], Any]) -> Any:
        if not self.is_shared:
            return step()
        self.starts = {one: one.detach().clone() for one in self.names if one.requires_grad}
        result = step()
        for parameter in self.names:
            if parameter in self.starts:
                self._submit_dense(parameter, parameter.detach() - self.starts[parameter])
            else:
                self.submit_alone(parameter)
        self._finish()
        return result

    def _store(self, parameter: torch.Tensor, delta: torch.Tensor) -> None:
        parameter.detach().copy_(self.starts.pop(parameter).add_(delta))


def _given_names(named_parameters: Any) -> dict[torch.Tensor, str] | None:
    """What the program calls its parameters; None: it does not say."""
    if named_parameters is None:
        return None
    named = list(named_parameters)
    if any(not isinstance(pair, tuple) for pair in named):
        raise ValueError(
            "named_parameters should be a sequence of tuples (name, parameter), usually model.named_parameters()"
        )
    names = [name for name, _ in named]
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) != len(names) else []
    if repeated:
        raise ValueError(f"parameter names in named_parameters must be unique; found duplicates: {', '.join(repeated)}")
    return {parameter: name for name, parameter in named}


def _names(optimizer: torch.optim.Optimizer, given: dict[torch.Tensor, str] | None) -> dict[torch.Tensor, str]:
    """The name of each parameter of the optimizer, the same on all ranks."""
    numbered = {
        parameter: f"allreduce.noname.{i}.{j}"
        for i, group in enumerate(optimizer.param_groups)
        for j, parameter in enumerate(group["params"])
    }
    if given is None:
        return numbered
    unnamed = [parameter for parameter in numbered if parameter not in given]
    if unnamed:
        raise ValueError(
            f"named_parameters was given, but {len(unnamed)} parameters of the optimizer are not in it; "
            "usually it is model.named_parameters()"
        )
    return {parameter: given[parameter] for parameter in numbered}


class _DistributedOptimizer(torch.optim.Optimizer):
    """The functions that an optimizer has instead of its own. Its class stays a base, so isinstance() holds."""

    @property
    def _parameter_names(self) -> dict[torch.Tensor, str]:
        """Programs of Horovod read it."""
        return self._ddl.names

    def synchronize(self) -> None:
        self._ddl.synchronize()

    @contextmanager
    def skip_synchronize(self) -> Any:
        """step() in this context does not wait: synchronize() has been called before, to clip gradients, say."""
        self._ddl.synchronizes = False
        try:
            yield
        finally:
            self._ddl.synchronizes = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        self._ddl.passes = passes
        for parameter in self._ddl.left:
            self._ddl.left[parameter] = passes

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._ddl.begin_anew()
        self._ddl.own.load_state_dict(self, state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self._ddl.own.add_param_group(self, param_group)
        self._ddl.add(self.param_groups[-1]["params"], len(self.param_groups) - 1)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        gradients = self._ddl
        if closure is not None:

            def with_all_gradients() -> Any:
                loss = closure()
                gradients.synchronize()
                return loss

            result = gradients.make_step(lambda: gradients.own.step(self, with_all_gradients))
            gradients.is_synchronized = False
            return result
        if gradients.synchronizes:
            if gradients.is_synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context after "
                    "optimizer.synchronize(). This can cause training slowdown. You may want to consider using "
                    "optimizer.skip_synchronize() context if you use optimizer.synchronize() in your code."
                )
            gradients.synchronize()
        gradients.is_synchronized = False
        return gradients.make_step(lambda: gradients.own.step(self))

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        if self._ddl.open:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                "optimizer.synchronize(). This is prohibited as it can cause a race condition. If a GradScaler has "
                "skipped the step, call optimizer.synchronize() before scaler.step()."
            )
        return self._ddl.own.zero_grad(self, *arguments, **named)


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: Any = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
    gradient_as_bucket_view: bool = False,
    bucket_cap_mb: float = 8.0,
) -> torch.optim.Optimizer:
    """The same optimizer, whose step() uses the gradients of all ranks.

    Each gradient is submitted when the backward pass has computed it. The optimizer keeps its state and parameters.
    With op=Adasum the gradients stay with their ranks: each makes its own step, with its own state, and what these
    steps have changed is combined. All ranks make the same steps; the rate need not grow with their number.

    gradient_as_bucket_view: gradients are views of buffers of libddl's, which are combined without copies, each when
    all of its gradients are there. The buffers are there as long as the optimizer, also between steps. A buffer has
    bucket_cap_mb MiB at most, or a single gradient.
    """
    op = op_of(None, op)
    if gradient_predivide_factor != 1.0 and op is not Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("num_groups is an old name for groups", DeprecationWarning, stacklevel=2)
    if isinstance(groups, int):
        num_groups, groups = groups, None
    if num_groups < 0:
        raise ValueError("num_groups must not be negative")
    if groups is not None and not isinstance(groups, (list, tuple)):
        raise ValueError("groups is a list of lists of parameters")
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    if isinstance(optimizer, _DistributedOptimizer):
        raise ValueError("the optimizer is a DistributedOptimizer already")
    gradients = (_Deltas if op is Adasum else _Gradients)(
        optimizer,
        named_parameters,
        compression,
        backward_passes_per_step,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        sparse_as_dense,
        process_set,
        bucket_cap_mb if gradient_as_bucket_view else None,
    )
    own = type(optimizer)
    functions = {name: value for name, value in vars(_DistributedOptimizer).items() if not name.startswith("__")}
    optimizer.__class__ = type(own.__name__, (own, _DistributedOptimizer), functions)
    optimizer._ddl = gradients
    # Schedulers of PyTorch, and its profiler, may have replaced the functions of the object.
    for name in ("step", "zero_grad"):
        vars(optimizer).pop(name, None)
    return optimizer
