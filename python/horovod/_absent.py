"""What Horovod has, and ddl has not."""
from typing import Any, Callable


def without_elastic(module: str) -> Callable[[str], Any]:
    """A module's __getattr__, which says why there is no elastic."""

    def attribute(name: str) -> Any:
        if name == "elastic":
            raise AttributeError(
                f"{module}.elastic is not there: no rank goes on when another is lost. Call the training function itself,"
                " save its state as checkpoints, and let ddlrun --elastic restart start all ranks again"
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return attribute
