"""The module with the handlers that XLA calls, and the primitive of JAX that they execute."""
from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

OLDEST = (0, 5, 0)

try:
    import jax
    import jaxlib
except ImportError as error:
    raise ImportError("ddl.jax needs JAX; install it by: pip install jax") from error
for _package in (jax, jaxlib):
    if tuple(int(part) for part in _package.__version__.split(".")[:3] if part.isdigit()) < OLDEST:
        raise ImportError(
            f"ddl.jax needs {_package.__name__} {'.'.join(map(str, OLDEST))} or newer, and this one is "
            f"{_package.__version__}: it has no calls that end later. Update it by: pip install -U jax"
        )

import jax.ffi
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from ddl._kernels import open_module
from ddl._library import beside

# In the order of the module's enumeration (named_calls.h).
KINDS = ("allreduce", "allgather", "broadcast", "alltoall", "reduce_scatter")
FILE = "libddl_jax.so"


def _settle(module: ctypes.CDLL) -> None:
    """Waits for the computations that this thread has started and JAX has not finished: other ranks may need them.
    Then for the threads of the module, which are in XLA still when the results are there."""
    try:
        # XLA runs what a thread has started in this order.
        (jnp.zeros(()) + 1).block_until_ready()
        jax.block_until_ready(jax.live_arrays())
    except Exception:
        pass  # of a computation whose result nobody has asked for
    module.ddl_jax_settle()


def _load() -> None:
    try:
        module = open_module(beside(FILE), _settle)
    except OSError as error:
        raise ImportError(f"the module for JAX cannot be loaded; install libddl again, whole: {error}") from error
    on_host = {stage: jax.ffi.pycapsule(getattr(module, f"ddl_jax_{stage}")) for stage in ("instantiate", "execute")}
    on_stream = jax.ffi.pycapsule(module.ddl_jax_execute_on_stream)
    for kind in KINDS:
        jax.ffi.register_ffi_target(f"ddl_jax_{kind}", on_host, platform="cpu")
        jax.ffi.register_ffi_target(f"ddl_jax_{kind}", on_stream, platform="CUDA")


_load()


# The primitive. Its result may be unused on one rank and used on another, so XLA is told that it has an effect. JAX is
# not: it would take the slower way to start each program.

collective = Primitive("ddl_collective")
collective.multiple_results = True


class _Programs(threading.local):
    """Numbers the programs that this process compiles, so that handlers know which calls are in one."""

    module: Any = None
    number = 0


_programs = _Programs()
_lock = threading.Lock()
_count = 0


def _program(ctx: mlir.LoweringRuleContext) -> int:
    global _count
    module = ctx.module_context.module
    if _programs.module is not module:
        with _lock:
            _count += 1
            _programs.module, _programs.number = module, _count
    return _programs.number


@collective.def_abstract_eval
def _results(*arrays: Any, shapes: Any, **_: Any) -> list[Any]:
    shapes = [one.shape for one in arrays] if shapes is None else shapes
    return [jax.core.ShapedArray(shape, one.dtype) for shape, one in zip(shapes, arrays)]


@functools.lru_cache(maxsize=1024)
def _compiled(**how: Any) -> Any:
    return jax.jit(functools.partial(collective.bind, **how))


@collective.def_impl
def _outside_of_jit(*arrays: Any, number: str, **how: Any) -> Any:
    # Calls of one name are made in the order of the program; with numbers each would be compiled anew.
    return _compiled(number="", **how)(*arrays)


def _devices(ctx: mlir.LoweringRuleContext) -> int:
    """Of the program."""
    axes = ctx.module_context.axis_context
    return getattr(axes, "num_devices", None) or getattr(getattr(axes, "mesh", None), "size", 1)


def _lower(ctx: mlir.LoweringRuleContext, *operands: Any, kind: str, name: str, number: str, shapes: Any, **how: Any):
    if _devices(ctx) > 1:
        raise NotImplementedError(
            f"{kind}() is of one device of each rank, and this program is for {_devices(ctx)} devices; start a rank for "
            "each device, or move the array to one of them by jax.device_put"
        )
    # A broadcast is in place.
    aliases = {i: i for i in range(len(operands))} if kind == "broadcast" else {}
    rule = jax.ffi.ffi_lowering(f"ddl_jax_{kind}", has_side_effect=True, operand_output_aliases=aliases)
    whole = f"{name}.{number}" if number else name
    numbers = {key: np.float64(one) if isinstance(one, float) else np.int64(one) for key, one in how.items()}
    numbers.update(kind=np.int64(KINDS.index(kind)), program=np.int64(_program(ctx)))
    return rule(ctx, *operands, name=whole, **numbers)


def _refuse_platform(ctx: mlir.LoweringRuleContext, *_: Any, **__: Any) -> Any:
    platforms = ", ".join(ctx.module_context.platforms)
    raise NotImplementedError(f"ddl.jax works on the platforms cpu and cuda, not on {platforms}; set JAX_PLATFORMS=cpu")


mlir.register_lowering(collective, _refuse_platform)
for _platform in ("cpu", "cuda"):
    mlir.register_lowering(collective, _lower, platform=_platform)


def _refuse_vmap(_arrays: Any, _dimensions: Any, *, kind: str, **_: Any) -> Any:
    raise NotImplementedError(
        f"{kind}() cannot be inside jax.vmap, where it would be a call for each element; call it for the whole array, "
        "outside of vmap"
    )


batching.primitive_batchers[collective] = _refuse_vmap
