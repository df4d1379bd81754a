"""Optimizers of Keras that combine the gradients of all ranks."""
from __future__ import annotations

import warnings
from typing import Any, Sequence

from ddl._horovod import Average, ProcessSet, Sum, global_process_set
from ddl.keras._checks import check_strategy
from ddl.keras._gradients import Gradients, Options
from ddl.keras._kinds import build, inner, is_built, is_of_keras_3, value_of, variables_of


def gradients_of(optimizer: Any) -> Gradients | None:
    """How the optimizer, or that inside of it, combines gradients; None: it does not."""
    own = getattr(optimizer, "_ddl", None)
    return getattr(inner(optimizer), "_ddl", None) if own is None else own


def is_distributed(optimizer: Any) -> bool:
    return gradients_of(optimizer) is not None


def _class_of(own: type, mixin: type, options: Options) -> type:
    """A class that saved models know by the name of its base: they load where ddl is not installed."""
    names = dict(__module__=own.__module__, __qualname__=own.__qualname__, __doc__=own.__doc__)
    return type(own.__name__, (mixin, own), dict(names, _ddl_options=options))


def _copied(optimizer: Any, mixin: type, options: Options) -> Any:
    config = optimizer.get_config()
    schedule = getattr(optimizer, "_learning_rate", None)
    if isinstance(config.get("learning_rate"), dict) and callable(schedule):
        config["learning_rate"] = schedule  # not of its description, which Keras may not know
    return _class_of(type(optimizer), mixin, options).from_config(config)


def _of_keras_3(optimizer: Any, options: Options) -> Any:
    import keras

    from ddl.keras._keras3 import Distributed, DistributedLossScale

    scales = hasattr(optimizer, "inner_optimizer")
    one = inner(optimizer)
    if options.backward_passes_per_step > 1:
        if one.gradient_accumulation_steps:
            raise ValueError(
                "the optimizer has gradient_accumulation_steps, by which Keras sums gradients of several passes; "
                "leave backward_passes_per_step 1"
            )
    if scales:
        own = dict(initial_scale=optimizer.initial_scale, dynamic_growth_steps=optimizer.dynamic_growth_steps)
        made = _class_of(type(optimizer), DistributedLossScale, options)(one, name=optimizer.name, **own)
    elif keras.config.dtype_policy().name == "mixed_float16":
        made = _class_of(keras.optimizers.LossScaleOptimizer, DistributedLossScale, options)(one)
    else:
        made = _copied(optimizer, Distributed, options)
    if options.backward_passes_per_step > 1:
        inner(made).gradient_accumulation_steps = options.backward_passes_per_step
    return made


def _of_keras_2(optimizer: Any, options: Options) -> Any:
    from ddl.keras._keras2 import Distributed

    if not hasattr(optimizer, "inner_optimizer"):
        return _copied(optimizer, Distributed, options)
    # It reduces the gradients of the inner one, and looks for infinite ones then.
    config = optimizer.get_config()
    config["inner_optimizer"] = _copied(optimizer.inner_optimizer, Distributed, options)
    return type(optimizer)(**config)


def _made(optimizer: Any, options: Options) -> Any:
    if is_distributed(optimizer):
        raise ValueError("the optimizer is a DistributedOptimizer already; gradients would be averaged twice")
    if not hasattr(optimizer, "get_config"):
        raise ValueError(
            f"a {type(optimizer).__name__} is no optimizer of Keras; for those of tf.compat.v1.train use ddl.tensorflow"
        )
    check_strategy()
    return (_of_keras_3 if is_of_keras_3(optimizer) else _of_keras_2)(optimizer, options)


def distributed_with_state(optimizer: Any, variables: Sequence[Any], **options: Any) -> Any:
    """An optimizer that goes on from the steps that the given one has taken. variables: those that it trains."""
    values = [value_of(one) for one in variables_of(optimizer)] if is_built(optimizer) else None
    made = _made(optimizer, Options(**options))
    if values is not None:
        build(made, variables)
        for variable, value in zip(variables_of(made), values):
            variable.assign(value)
    return made


def DistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = None,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: Any = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """A copy of the optimizer, whose steps use the gradients of all ranks.

    It is a subclass of the optimizer's class, by the same name. With the policy mixed_float16 it is a
    LossScaleOptimizer around it. device_dense, device_sparse: accepted, and not used.
    """
    if op not in (Average, Sum):
        raise ValueError("op is Average or Sum")
    if gradient_predivide_factor != 1.0 and op is not Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("num_groups is an old name for groups", DeprecationWarning, stacklevel=2)
    if isinstance(groups, int):
        num_groups, groups = groups, None
    if num_groups < 0 or not (groups is None or isinstance(groups, (list, tuple))):
        raise ValueError("groups is a number that is not negative, or a list of lists of variables")
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    return _made(optimizer, Options(
        compression, sparse_as_dense, gradient_predivide_factor, op, backward_passes_per_step,
        average_aggregated_gradients, num_groups, groups, process_set, scale_local_gradients, name,
    ))


def PartialDistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = None,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: Any = Average,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """The same, but the gradients of some layers stay each rank's own. local_layers: a layer, or a list of layers."""
    layers = [] if local_layers is None else local_layers
    layers = list(layers) if isinstance(layers, (list, tuple, set)) else [layers]
    for layer in layers:
        if not hasattr(layer, "trainable_weights"):
            raise ValueError(f"local_layers is a layer or a list of layers, and has a {type(layer).__name__}")
    made = DistributedOptimizer(
        optimizer, name, device_dense, device_sparse, compression, sparse_as_dense, gradient_predivide_factor, op,
        groups=groups, process_set=process_set, scale_local_gradients=scale_local_gradients,
    )
    one = made if hasattr(made, "register_local_var") else inner(made)
    for layer in layers:
        for variable in layer.trainable_weights:
            one.register_local_var(variable)
    return made
