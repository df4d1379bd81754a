"""XLA compiles a function as one piece, in which no other rank can take part."""
from __future__ import annotations

import tensorflow as tf

try:
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext as _is_for_xla
except ImportError:  # It is not documented. Without it, TensorFlow says that an operation has no kernel of XLA.

    def _is_for_xla(graph: tf.Graph) -> bool:
        return False


def is_compiling() -> bool:
    """Whether a function is being traced for XLA, because it or one that calls it has jit_compile=True."""
    return not tf.executing_eagerly() and _is_for_xla(tf.compat.v1.get_default_graph())


def refuse_xla(call: str, name: str | None = None) -> None:
    """Raises a ValueError if a function for XLA is being traced, whose call of libddl this is."""
    if is_compiling():
        what = f'{call} "{name}"' if name else call
        raise ValueError(
            f"{what} is in a function that XLA compiles, and XLA cannot call libddl: call it outside of the function "
            "that has jit_compile=True, or set jit_compile=False"
        )
