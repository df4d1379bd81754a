"""Sparse tensors of all ranks combined, by two gathers."""
from __future__ import annotations

import torch

from ddl._horovod import Average, Sum, global_process_set, op_of, synchronize
from ddl.torch._moves import allgather_async


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Submits a sparse tensor; what is returned is called for the result."""
    op = op_of(None, op)
    if op not in (Average, Sum):
        raise ValueError(f"sparse tensors are combined by Average or Sum, not {op}")
    tensor = tensor.coalesce()
    indices = allgather_async(tensor.indices().transpose(0, 1).contiguous(), f"{name}.indices", process_set)
    values = allgather_async(tensor.values().contiguous(), f"{name}.values", process_set)

    def result():
        all_values = synchronize(values)
        if op is Average:
            all_values = all_values / process_set.size()
        all_indices = synchronize(indices).transpose(0, 1)
        return torch.sparse_coo_tensor(all_indices, all_values, tensor.size()).coalesce()

    return result
