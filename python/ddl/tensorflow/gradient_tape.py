"""tf.GradientTape, whose gradients are those of all ranks."""
from __future__ import annotations

from typing import Any

import tensorflow as tf

from ddl._horovod import Average, global_process_set
from ddl.tensorflow.compression import Compression
from ddl.tensorflow.reduction import Reduction


class _Distributed:
    """What the class of a tape gets."""

    _reduction: Reduction

    def register_local_source(self, source):
        """The gradient of this source stays this rank's own."""
        self._reduction.register_local(source)

    def gradient(self, target, sources, output_gradients=None, use_generic_names=False, **options):
        """The gradients of all ranks combined. use_generic_names: the same names, whatever the variables are called."""
        found = super().gradient(target, sources, output_gradients, **options)
        reduced = self._reduction(tf.nest.flatten(found), tf.nest.flatten(sources), use_generic_names)
        return tf.nest.pack_sequence_as(found, reduced)

    def get_local_and_global_gradients(self, target, sources, output_gradients=None, use_generic_names=False):
        """Two lists of (source, gradient): of local sources, and of the others."""
        gradients = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(tf.nest.flatten(sources), tf.nest.flatten(gradients)))
        mine = [pair for pair in pairs if self._reduction.is_local(pair[0])]
        return mine, [pair for pair in pairs if not self._reduction.is_local(pair[0])]


def DistributedGradientTape(
    gradtape,
    device_dense="",
    device_sparse="",
    compression=Compression.none,
    sparse_as_dense=False,
    op=Average,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
    process_set=global_process_set,
    scale_local_gradients=True,
):
    """The tape, recorded already or not, with gradients that are combined over the ranks."""
    reduction = Reduction(
        "DistributedGradientTape", device_dense, device_sparse, compression, sparse_as_dense, op,
        gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients,
    )
    kind = type(gradtape)
    if issubclass(kind, _Distributed):
        raise ValueError("this tape is a DistributedGradientTape already")
    tape = object.__new__(type(kind.__name__, (_Distributed, kind), {}))
    tape.__dict__.update(gradtape.__dict__, _reduction=reduction)
    return tape


def layers_of(local_layers: Any, function: str) -> list[Any]:
    """One layer, or a list of layers."""
    layers = [] if local_layers is None else local_layers if isinstance(local_layers, (list, tuple)) else [local_layers]
    for layer in layers:
        if not hasattr(layer, "trainable_weights"):
            raise ValueError(f"local_layers of {function} are layers of Keras, not {type(layer).__name__}")
    return list(layers)


def PartialDistributedGradientTape(
    gradtape,
    device_dense="",
    device_sparse="",
    compression=Compression.none,
    sparse_as_dense=False,
    op=Average,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
    process_set=global_process_set,
    local_layers=None,
    scale_local_gradients=True,
):
    """The same, but each rank has its own gradients of local_layers: a layer, or a list of layers."""
    layers = layers_of(local_layers, "PartialDistributedGradientTape")
    tape = DistributedGradientTape(
        gradtape, device_dense, device_sparse, compression, sparse_as_dense, op, gradient_predivide_factor, num_groups,
        groups, process_set, scale_local_gradients,
    )
    for layer in layers:
        for variable in layer.trainable_weights:
            tape.register_local_source(variable)
    return tape
