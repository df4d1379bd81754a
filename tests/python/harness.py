"""Runs the tests of a program on every rank: its functions whose names begin with test_, in the order of the file."""
import sys
import traceback
from contextlib import contextmanager


@contextmanager
def raises(kind, *parts):
    """The body raises an error of this kind, whose text has these parts."""
    try:
        yield
    except kind as error:
        for part in parts:
            assert part in str(error), f"{part!r} is not in: {error}"
        return
    raise AssertionError(f"no {kind.__name__} was raised")


def run(namespace, rank):
    """Ends the program: with 0 if all tests passed on this rank."""
    tests = [(name, test) for name, test in namespace.items() if name.startswith("test_")]
    for name, test in tests:
        try:
            test()
        except BaseException:  # the other ranks may wait for this one: end the job
            print(f"rank {rank}: {name} failed\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            sys.exit(1)
    print(f"rank {rank}: all {len(tests)} tests passed", flush=True)
