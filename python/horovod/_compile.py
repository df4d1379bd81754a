"""Keras 3 refuses an argument of compile() that Horovod's examples give, and that TensorFlow 2.2 and later ignore."""
import functools
import inspect
import warnings
from typing import Any

NAME = "experimental_run_tf_function"
_has_warned = False


def accept_experimental_run_tf_function(keras: Any) -> None:
    """Wraps compile() of the module keras once, to drop that argument with one warning. Keras 2 takes it itself."""
    trainer = next(one for one in keras.Model.__mro__ if "compile" in vars(one))
    compile_model = trainer.compile
    takes_others = any(one.kind is one.VAR_KEYWORD for one in inspect.signature(compile_model).parameters.values())
    if takes_others or hasattr(compile_model, "drops_experimental_run_tf_function"):
        return

    @functools.wraps(compile_model)
    def compile(self, *args, **kwargs):
        global _has_warned
        if kwargs.pop(NAME, None) is not None and not _has_warned:
            _has_warned = True
            warnings.warn(f"compile() of Keras 3 has no {NAME}, so it is dropped; omit it", stacklevel=2)
        return compile_model(self, *args, **kwargs)

    compile.drops_experimental_run_tf_function = True
    trainer.compile = compile
