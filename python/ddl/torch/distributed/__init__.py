"""The backend "ddl" of torch.distributed.

works: calls that go on, and the thread that makes them. collectives: libddl's calls on tensors. messages: those with
tags. joining: how members find each other. monitored: monitored_barrier(). members: these together, for one group.
methods: what PyTorch calls. versions: what it does with classes of Python. group: the objects that PyTorch gets.
"""
