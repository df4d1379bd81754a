"""Collectives on NumPy arrays through ctypes: a program in another language needs nothing but ddl.h's functions.

    numpy_arrays.py LIBRARY    under a launcher; says "rank R of N: NumPy conforms" or fails with a traceback
"""
import ctypes
import sys

import numpy as np

DTYPES = {"int8": 0x100, "int16": 0x110, "int32": 0x120, "int64": 0x130, "uint8": 0x200, "uint16": 0x210,
          "uint32": 0x220, "uint64": 0x230, "float16": 0x310, "float32": 0x320, "float64": 0x330, "bool": 0x400}
SUM, AVERAGE, MIN, MAX, PRODUCT = range(5)


class CallOptions(ctypes.Structure):
    """struct ddl_call_options"""

    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("process_set", ctypes.c_uint64),
                ("timeout_seconds", ctypes.c_double), ("stream", ctypes.c_void_p), ("prescale", ctypes.c_double),
                ("postscale", ctypes.c_double)]

    def __init__(self, **values):
        super().__init__(ctypes.sizeof(CallOptions), 0, 0, 0.0, None, 1.0, 1.0)
        for name, value in values.items():
            setattr(self, name, value)


class Job:
    """The functions that are used below, by the names of ddl.h without their prefix."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.ddl_last_error.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p()
        self.check(self.library.ddl_init(None, ctypes.byref(self.context)))
        self.rank = self.library.ddl_rank(self.context)
        self.size = self.library.ddl_size(self.context)

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.ddl_last_error().decode())

    def call(self, name, *arguments, **options):
        c = [self.as_c(argument) for argument in arguments]
        self.check(getattr(self.library, "ddl_" + name)(self.context, *c, ctypes.byref(CallOptions(**options))))

    @staticmethod
    def as_c(argument):
        if isinstance(argument, np.ndarray):
            assert argument.flags.c_contiguous
            return ctypes.c_void_p(argument.ctypes.data)
        if isinstance(argument, np.dtype):
            return ctypes.c_int32(DTYPES[argument.name])
        return argument

    def split(self, color, key):
        process_set = ctypes.c_uint64()
        self.check(self.library.ddl_process_set_split(self.context, ctypes.c_uint64(0), color, key,
                                                      ctypes.byref(process_set)))
        return process_set.value


def count(array):
    return ctypes.c_uint64(array.size)


def array_of(rank, shape, dtype):
    """Small whole numbers, different on each rank; the same wherever they are made."""
    values = np.random.default_rng(rank).integers(0, 5, shape)
    return values.astype(dtype)


def check_reductions(job, dtype):
    all_ranks = np.stack([array_of(rank, (17, 17), dtype) for rank in range(job.size)])
    own, result = all_ranks[job.rank].copy(), np.zeros((17, 17), dtype)
    wanted = {MIN: all_ranks.min(0), MAX: all_ranks.max(0)}
    if dtype != np.bool_:
        wanted[SUM] = all_ranks.sum(0, dtype=dtype)
        wanted[PRODUCT] = all_ranks.prod(0, dtype=dtype)
    for op, value in wanted.items():
        job.call("allreduce", own, result, count(own), dtype, op)
        np.testing.assert_array_equal(result, value)
        result[:] = 0
        job.call("reduce", own, result, count(own), dtype, op, job.size - 1)
        np.testing.assert_array_equal(result, value if job.rank == job.size - 1 else np.zeros_like(value))
        counts = np.full(job.size, 289 // job.size, np.uint64)
        counts[0] += 289 % job.size
        begin = int(counts[:job.rank].sum())
        part = np.zeros(int(counts[job.rank]), dtype)
        job.call("reduce_scatter", own, part, counts, dtype, op)
        np.testing.assert_array_equal(part, value.ravel()[begin:begin + part.size])
    np.testing.assert_array_equal(own, all_ranks[job.rank])


def check_scan_and_scales(job):
    all_ranks = np.stack([array_of(rank, 100, np.float64) for rank in range(job.size)])
    own = all_ranks[job.rank].copy()
    job.call("scan", own, own, count(own), own.dtype, SUM)
    np.testing.assert_array_equal(own, np.cumsum(all_ranks, 0)[job.rank])
    own = all_ranks[job.rank].copy()
    job.call("allreduce", own, own, count(own), own.dtype, SUM, prescale=0.5, postscale=-4.0)
    np.testing.assert_array_equal(own, -2.0 * all_ranks.sum(0))
    # Integers are truncated toward zero before they are added.
    odd = np.array([3, -3], np.int32)
    job.call("allreduce", odd, odd, count(odd), odd.dtype, SUM, prescale=0.5)
    np.testing.assert_array_equal(odd, [job.size, -job.size])


def check_movement(job, dtype):
    shape = (3, 17)
    parts = [array_of(rank, shape, dtype) for rank in range(job.size)]
    own, everything = parts[job.rank], np.stack(parts)
    gathered = np.zeros_like(everything)
    job.call("allgather", own, gathered, count(own), dtype)
    np.testing.assert_array_equal(gathered, everything)
    gathered[:] = 0
    job.call("gather", own, gathered, count(own), dtype, 0)
    np.testing.assert_array_equal(gathered, everything if job.rank == 0 else np.zeros_like(everything))
    received = np.zeros_like(own)
    job.call("scatter", everything, received, count(own), dtype, 0)
    np.testing.assert_array_equal(received, own)
    received = parts[job.rank].copy()
    job.call("broadcast", received, count(received), dtype, job.size - 1)
    np.testing.assert_array_equal(received, parts[-1])

    # Rank s sends every rank values made of its own and the receiver's number.
    sent = np.stack([array_of(100 * job.rank + to, shape, dtype) for to in range(job.size)])
    wanted = np.stack([array_of(100 * source + job.rank, shape, dtype) for source in range(job.size)])
    came = np.zeros_like(sent)
    job.call("alltoall", sent, came, count(own), dtype)
    np.testing.assert_array_equal(came, wanted)

    # As many rows as the rank's number plus one.
    counts = np.array([(rank + 1) * 17 for rank in range(job.size)], np.uint64)
    rows = [array_of(rank, (rank + 1, 17), dtype) for rank in range(job.size)]
    all_rows = np.zeros((int(counts.sum()) // 17, 17), dtype)
    job.call("allgatherv", rows[job.rank], all_rows, counts, dtype)
    np.testing.assert_array_equal(all_rows, np.concatenate(rows))

    sent = np.concatenate([np.full((to + 1) * 17, job.rank % 2, dtype) for to in range(job.size)])
    wanted = np.concatenate([np.full((job.rank + 1) * 17, source % 2, dtype) for source in range(job.size)])
    came, came_counts = np.zeros_like(wanted), np.zeros(job.size, np.uint64)
    job.call("alltoallv", sent, counts, came, count(came), came_counts, dtype)
    np.testing.assert_array_equal(came_counts, np.full(job.size, (job.rank + 1) * 17))
    np.testing.assert_array_equal(came, wanted)


def check_process_set(job):
    process_set = job.split(job.rank % 2, -job.rank)
    members = [rank for rank in reversed(range(job.size)) if rank % 2 == job.rank % 2]
    gathered = np.zeros(len(members), np.int64)
    job.call("allgather", np.array([job.rank]), gathered, ctypes.c_uint64(1), gathered.dtype,
             process_set=process_set)
    np.testing.assert_array_equal(gathered, members)
    job.check(job.library.ddl_process_set_free(job.context, ctypes.c_uint64(process_set)))


def main():
    job = Job(sys.argv[1])
    for name in DTYPES:
        check_reductions(job, np.dtype(name))
        check_movement(job, np.dtype(name))
    check_scan_and_scales(job)
    check_process_set(job)
    job.check(job.library.ddl_finalize(job.context))
    print(f"rank {job.rank} of {job.size}: NumPy conforms")


main()
