"""The package horovod, which --as-horovod gives to ranks: ddl.torch by Horovod's names."""
import importlib
import inspect
import os
import sys

import ddl
import horovod
import horovod.torch as hvd
import torch
from harness import raises, run

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def test_version():
    assert horovod.__version__ == f"0.28.1+ddl.{ddl.__version__}", horovod.__version__
    assert "as-horovod" in horovod.__file__, horovod.__file__


def test_names():
    # What scripts of PyTorch import; tests/frameworks compares with Horovod itself.
    for module, names in (
        ("horovod", "run"),
        ("horovod.torch.mpi_ops", "allreduce_async_ synchronize poll rank size gpu_available num_rank_is_power_2"),
        ("horovod.torch.functions", "broadcast_parameters broadcast_optimizer_state broadcast_object allgather_object"),
        ("horovod.torch.compression", "Compression"),
        ("horovod.torch.optimizer", "DistributedOptimizer"),
        ("horovod.torch.sync_batch_norm", "SyncBatchNorm"),
        ("horovod.common.exceptions", "HorovodInternalError HostsUpdatedInterrupt"),
        ("horovod.common.process_sets", "ProcessSet add_process_set"),
        ("horovod.common.elastic", "HorovodInternalError HostsUpdatedInterrupt ObjectState State run_fn"),
        ("horovod.torch.elastic", "ElasticSampler ObjectState TorchState run run_fn"),
        ("horovod.torch.elastic.sampler", "ElasticSampler"),
        ("horovod.torch.elastic.state", "ModelStateHandler TorchState get_handler_registry set_handler_registry"),
    ):
        one = importlib.import_module(module)
        for name in names.split():
            assert hasattr(one, name), f"{module}.{name}"
    assert hvd.HorovodInternalError is ddl.Error
    assert hvd.DistributedOptimizer is ddl.torch.DistributedOptimizer
    assert hvd.elastic.__name__ == "horovod.torch.elastic"


def test_states():
    from horovod.common.elastic import ObjectState

    state = ObjectState(hvd.broadcast_object, hvd.rank, epoch=[1])
    state.epoch.append(2)
    state.restore()
    assert state.epoch == [1]


def test_util():
    from horovod.common import util

    assert util.split_list(list(range(7)), 3) == [[0, 1, 2], [3, 4], [5, 6]]
    assert [util.num_rank_is_power_2(n) for n in (0, 1, 2, 3, 4)] == [False, True, True, False, True]
    compared = {"2.10.1": True, "2.4": True, "2.4.0rc1": False, "2.4.0+cpu": True, "2.3.9": False, "3": True}
    assert {one: util.is_version_greater_equal_than(one, "2.4.0") for one in compared} == compared
    with raises(ValueError, "three numbers"):
        util.is_version_greater_equal_than("2.10", "2.4")
    assert util.extension_available("torch") and not util.extension_available("mxnet")
    assert util.gpu_available("torch") == torch.cuda.is_available()
    os.environ["DDL_TEST_BEFORE"] = "a"
    with util.env(DDL_TEST_BEFORE="b", DDL_TEST_NEW="c", DDL_TEST_NONE=None):
        assert (os.environ["DDL_TEST_BEFORE"], os.environ["DDL_TEST_NEW"]) == ("b", "c")
    assert os.environ["DDL_TEST_BEFORE"] == "a" and "DDL_TEST_NEW" not in os.environ
    average = util.get_average_backwards_compatibility_fun(hvd)
    assert average(op=None, average=None) is hvd.Average and average(op=hvd.Sum, average=None) is hvd.Sum

    from horovod.runner.common.util.env import get_env_rank_and_size

    assert get_env_rank_and_size() == (RANK, SIZE)


def test_training():
    hvd.init()
    assert (hvd.rank(), hvd.size()) == (RANK, SIZE)
    torch.manual_seed(RANK)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    # As Horovod leaves them.
    assert all(torch.equal(one.grad, torch.zeros_like(one)) for one in model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 3), RANK + 1.0)).sum().backward()
        optimizer.step()
    weights = hvd.allgather_object(model.weight.tolist())
    assert weights == weights[:1] * SIZE


def test_join():
    if SIZE == 1:
        return
    if RANK > 0:
        moves = (
            lambda: hvd.allgather(torch.ones(2)),
            lambda: hvd.broadcast(torch.ones(2), root_rank=1),
            lambda: hvd.alltoall(torch.ones(SIZE)),
            lambda: hvd.reducescatter(torch.ones(SIZE)),
        )
        for move in moves:
            with raises(hvd.HorovodInternalError, "rank 0", "has joined"):
                move()
        # An allreduce goes on, and rank 0 gives zeros.
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == SIZE - 1
    hvd.join()
    assert hvd.allgather(torch.full((1,), float(RANK))).tolist() == list(range(SIZE))


def test_keras_compile():
    # Stands for Keras 3, which is not installed here.
    class Trainer:
        def compile(self, optimizer=None):
            self.optimizer = optimizer

    class Model(Trainer):
        pass

    keras = type(sys)("keras")
    keras.Model = Model
    import warnings

    from horovod._compile import accept_experimental_run_tf_function

    for _ in range(2):
        accept_experimental_run_tf_function(keras)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for _ in range(2):
            model = Model()
            model.compile(optimizer="sgd", experimental_run_tf_function=False)
            assert model.optimizer == "sgd"
    assert [str(one.message) for one in shown] == [
        "compile() of Keras 3 has no experimental_run_tf_function, so it is dropped; omit it"
    ]
    with raises(TypeError, "nothing"):
        Model().compile(nothing=1)
    assert inspect.signature(Trainer.compile).parameters.keys() == {"self", "optimizer"}


run(globals(), RANK)
