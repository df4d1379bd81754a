"""The module with the handlers that XLA calls, and the primitive of JAX that they execute."""
from __future__ import annotations

import atexit
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

import ddl
from ddl._context import _at_end, context
from ddl._library import beside, ffi

KINDS = ("allreduce", "allgather", "broadcast", "alltoall", "reduce_scatter")
FILE = "libddl_jax.so"


def _load() -> ctypes.CDLL:
    path = beside(FILE)
    try:
        module = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"the module for JAX cannot be loaded; install libddl again, whole: {error}") from error
    module.ddl_jax_context.argtypes = [ctypes.c_void_p]
    module.ddl_jax_context.restype = None
    instantiate = jax.ffi.pycapsule(module.ddl_jax_instantiate)
    for kind in KINDS:
        stages = {"instantiate": instantiate, "execute": jax.ffi.pycapsule(getattr(module, f"ddl_jax_{kind}"))}
        jax.ffi.register_ffi_target(f"ddl_jax_{kind}", stages, platform="cpu")
        on_stream = jax.ffi.pycapsule(getattr(module, f"ddl_jax_stream_{kind}"))
        jax.ffi.register_ffi_target(f"ddl_jax_{kind}", on_stream, platform="CUDA")
    return module


_module = _load()
_is_told = False


def _settle() -> None:
    """Waits for the computations that this thread has started and JAX has not finished: other ranks may need them."""
    if not _is_told:
        return
    try:
        # XLA runs what a thread has started in this order.
        (jnp.zeros(()) + 1).block_until_ready()
        jax.block_until_ready(jax.live_arrays())
    except Exception:
        pass  # of a computation whose result nobody has asked for


def _leave() -> None:
    """Before ddl.shutdown(): calls that begin later fail."""
    global _is_told
    _settle()
    _module.ddl_jax_context(None)
    _is_told = False


# Before JAX's own, which come next, and ddl's, which may come last.
atexit.register(lambda: _is_told and _leave())


def ready() -> None:
    """The handlers know the context, if there is one; else an error says what to do."""
    global _is_told
    if _is_told:
        return
    if not ddl.is_initialized():
        raise ddl.InvalidArgument("this process has not joined the job; call ddl.jax.init() first")
    if _leave not in _at_end:
        _at_end.append(_leave)
    _module.ddl_jax_context(int(ffi.cast("uintptr_t", context())))
    _is_told = True


def init(timeout_seconds: float = 0.0) -> None:
    """Joins the job, as ddl.init(). jax.distributed is not needed, and may be used beside it."""
    ddl.init(timeout_seconds)
    ready()


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
    return rule(ctx, *operands, name=whole, program=np.int64(_program(ctx)), **numbers)


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
