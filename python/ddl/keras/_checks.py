"""What cannot be together with ddl.keras, said before ranks wait for each other."""
from __future__ import annotations

import sys
from typing import Any


def check_strategy(strategy: Any = None) -> None:
    """Raises in the scope of a strategy of TensorFlow with several replicas. strategy: None: the current one."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not hasattr(tensorflow, "distribute"):
        return
    strategy = strategy or tensorflow.distribute.get_strategy()
    replicas = getattr(strategy, "num_replicas_in_sync", 1)
    if replicas > 1:
        raise ValueError(
            f"{type(strategy).__name__} reduces gradients over its {replicas} replicas, and ddl.keras over the ranks; "
            "use one of them: make and train the model outside of the strategy's scope"
        )
