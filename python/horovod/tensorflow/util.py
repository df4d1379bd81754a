"""How a program runs TensorFlow's operations, by the names that Horovod's own tests import."""
from __future__ import annotations

from typing import Any

import tensorflow as tf

_executing_eagerly = tf.executing_eagerly


def vars_to_refs(vars: Any) -> Any:
    """A variable, or lists of them, as a key of a dict."""
    return tuple(vars_to_refs(one) for one in vars) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs: Any) -> Any:
    return [refs_to_vars(one) for one in refs] if isinstance(refs, tuple) else refs.deref()
