"""What ranks get from each other before they train, by the name of Horovod's module."""
from ddl._horovod import allgather_object, broadcast_object
from ddl.torch._optimizer_state import broadcast_optimizer_state
from ddl.torch._parameters import broadcast_parameters
