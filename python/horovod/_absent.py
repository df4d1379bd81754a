"""What Horovod has, and ddl has not."""
from typing import Any, Callable


def without_elastic(module: str) -> Callable[[str], Any]:
    """A module's __getattr__, which says why there is no elastic."""

    def attribute(name: str) -> Any:
        if name == "elastic":
            raise AttributeError(
                f"{module}.elastic is not there: ddlrun starts a fixed number of ranks, and does not replace one that"
                " is lost. Call the training function itself, and save its state as checkpoints"
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return attribute
