"""How long an allreduce takes as an operation of TensorFlow or JAX, beside the C functions, in one run.

    ddlrun -np 2 python calls.py tensorflow|jax [--largest BYTES] [--rounds N]
    ddlrun -np 2 --gloo python calls.py horovod [...]     Horovod's in TensorFlow, where both are installed

Rank 0 prints a table of microseconds: medians over the rounds, in each of which every way has its turn.

C               ddl_allreduce(), and ddl_allreduce_async() with ddl_wait()
a call          one compiled function that has one allreduce, called from Python; "multiply": one that has a
                multiplication instead
in a program    one of LENGTH allreduces in a compiled function, of which each needs the one before it, less the same
                function with multiplications
"""
import argparse
import statistics
import time

import numpy as np

SIZES = [4, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]
LENGTH = 100  # of a program
BUDGET_BYTES, MOST_CALLS = 32 << 20, 200  # of a way's turn


def in_tensorflow(hvd, count):
    """The ways of a size: by name, a function, and how many allreduces or multiplications it has."""
    import tensorflow as tf

    one = tf.ones(count)
    multiply = lambda x, _: x * 0.5
    allreduce = lambda x, i: hvd.allreduce(x, op=hvd.Average, name=f"x{i}")

    def program(step, length):
        def body(x):
            for i in range(length):
                x = step(x, i)
            return x

        compiled = tf.function(body, jit_compile=False)
        return lambda: compiled(one).numpy()

    return ways(program, multiply, allreduce)


def in_jax(count):
    import ddl.jax
    import jax
    import jax.numpy as jnp

    one = jnp.ones(count)
    allreduce = lambda x, i: ddl.jax.allreduce(x, ddl.jax.AVERAGE, name=f"x{i}")

    def program(step, length):
        def body(x):
            for i in range(length):
                x = step(x, i)
            return x

        compiled = jax.jit(body)
        return lambda: compiled(one).block_until_ready()

    return ways(program, lambda x, _: jax.lax.optimization_barrier(x * 0.5), allreduce)


def ways(program, multiply, allreduce):
    return {
        "multiply": (program(multiply, 1), 1),
        "a call": (program(allreduce, 1), 1),
        "multiplications": (program(multiply, LENGTH), LENGTH),
        "allreduces": (program(allreduce, LENGTH), LENGTH),
    }


def in_c(count):
    import ddl
    from ddl._context import context
    from ddl._library import NULL, ffi, lib

    ddl.init()
    memory = np.ones(count, np.float32)
    place = ffi.cast("void *", memory.ctypes.data)
    arguments = place, place, count, lib.DDL_FLOAT32, lib.DDL_SUM
    request = ffi.new("ddl_handle **")

    def named():
        lib.ddl_allreduce_async(context(), b"c", *arguments, NULL, request)
        lib.ddl_wait(request[0])

    return {"C": (lambda _=memory: lib.ddl_allreduce(context(), *arguments, NULL), 1), "C, named": (named, 1)}


def microseconds(call, times):
    call()
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return 1e6 * (time.perf_counter() - begin) / times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=["tensorflow", "jax", "horovod"])
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.framework == "jax":
        import ddl.jax as hvd
    else:
        import tensorflow as tf

        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.threading.set_intra_op_parallelism_threads(1)
        if options.framework == "horovod":
            import horovod.tensorflow as hvd
        else:
            import ddl.tensorflow as hvd
    hvd.init()
    if hvd.rank() == 0:
        names = ["C", "C, named", "multiply", "a call", "in a program"]
        print("| bytes | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
    for size in (one for one in SIZES if one <= options.largest):
        count = size // 4
        some = in_jax(count) if options.framework == "jax" else in_tensorflow(hvd, count)
        if options.framework != "horovod":
            some = {**in_c(count), **some}
        times = max(min(BUDGET_BYTES // size, MOST_CALLS), 2)
        figures = {name: [] for name in some}
        for _ in range(options.rounds):
            for name, (call, length) in some.items():
                figures[name].append(microseconds(call, max(times // length, 2)))
        if hvd.rank() == 0:
            median = {name: statistics.median(one) for name, one in figures.items()}
            pairs = zip(figures["allreduces"], figures["multiplications"])
            in_program = [(whole - without) / LENGTH for whole, without in pairs]
            median["in a program"] = statistics.median(in_program)
            cells = [f"{median[name]:.1f}" if name in median else "" for name in names]
            print(f"| {size} | " + " | ".join(cells) + " |", flush=True)
    hvd.shutdown()


main()
