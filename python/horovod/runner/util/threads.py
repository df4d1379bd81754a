"""Threads that end with the process."""
from __future__ import annotations

import threading
from typing import Any, Callable, Sequence


def in_thread(
    target: Callable[..., Any], args: Sequence[Any] = (), name: str | None = None, daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Starts target(*args). silent: its exceptions are not shown."""

    def call() -> None:
        try:
            target(*args)
        except Exception:
            if not silent:
                raise

    thread = threading.Thread(target=call, name=name, daemon=daemon)
    thread.start()
    return thread
