"""How torch.distributed finds the backend "ddl" by its name, without an import in the program.

This module imports neither ddl nor libddl, since PyTorch may load it where nobody asks for them.
"""


def _create(*arguments):
    """Makes a process group, for init_process_group() and new_group()."""
    from ddl.torch.distributed import group

    return group.create(*arguments)


def register():
    """Makes the name known. PyTorch calls it when a program first asks for it, by the entry point
    torch.distributed.backends."""
    import inspect

    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, "DDL"):
        return
    known = inspect.signature(dist.Backend.register_backend).parameters
    options = {"extended_api": True, "devices": ["cpu", "cuda"]}
    dist.Backend.register_backend("ddl", _create, **{name: options[name] for name in options if name in known})


def autoload():
    """The same at every import of torch, by the entry point torch.backends, for the versions that do not ask for a
    backend by its name. An error here would be one of `import torch`."""
    try:
        import torch.distributed as dist

        if dist.is_available() and not hasattr(dist.Backend, "_ensure_backend_registered"):
            register()
    except Exception:
        pass  # init_process_group("ddl") says then that there is no such backend
