"""The backend "ddl" of torch.distributed.

works: calls that go on, and the thread that makes them. collectives: libddl's calls on tensors. messages: those with
tags. launching: how libddl's ranks find each other without a launcher of its own. joining: how members of a group do.
monitored: monitored_barrier(). members: these together, for one group. methods: what PyTorch calls. versions: what it
does with classes of Python. group: the objects that PyTorch gets.
"""
