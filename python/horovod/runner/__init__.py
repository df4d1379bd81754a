"""horovod.run(): a function on several ranks, which ddlrun starts."""
from __future__ import annotations

import warnings
from typing import Any, Callable, Sequence

import ddl


def _renamed(old: str, new: str, value: Any, given: Any) -> Any:
    if value is None:
        return given
    warnings.warn(f"{old} is an old name for {new}", DeprecationWarning, stacklevel=3)
    return value


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    num_proc: int = 1,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    slots: int | None = None,
    reset_limit: int | None = None,
    cooldown_range: Any = None,
    hosts: str | None = None,
    hostfile: str | None = None,
    host_discovery_script: str | None = None,
    start_timeout: int | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    disable_cache: bool | None = None,
    output_filename: str | None = None,
    verbose: Any = None,
    use_gloo: bool | None = None,
    use_mpi: bool | None = None,
    mpi_args: str | None = None,
    network_interface: str | None = None,
    network_interfaces: Sequence[str] | None = None,
    executable: str | None = None,
    np: int | None = None,
    min_np: int | None = None,
    max_np: int | None = None,
) -> list[Any]:
    """Calls func(*args, **kwargs) on num_proc ranks, and returns the results by rank, as ddl.run() does.

    hosts: "a:2,b:2"; without it and hostfile, this machine with num_proc slots. The arguments of elastic jobs raise
    NotImplementedError. disable_cache and use_gloo change nothing. Raises ddl.RunError, a RuntimeError, if a rank
    fails.
    """
    num_proc = _renamed("np", "num_proc", np, num_proc)
    elastic = {
        "min_num_proc": _renamed("min_np", "min_num_proc", min_np, min_num_proc),
        "max_num_proc": _renamed("max_np", "max_num_proc", max_np, max_num_proc),
        "slots": slots,
        "reset_limit": reset_limit,
        "cooldown_range": cooldown_range,
        "host_discovery_script": host_discovery_script,
    }
    for name, value in elastic.items():
        if value is not None:
            raise NotImplementedError(f"{name}: ddlrun starts a fixed number of ranks; omit it, and give num_proc")
    if hosts is not None and hostfile is not None:
        raise ValueError("hosts and hostfile contradict each other; give one of them")
    if use_gloo and use_mpi:
        raise ValueError("use_gloo and use_mpi contradict each other; give one of them")
    if network_interface is not None:
        network_interfaces = _renamed("network_interface", "network_interfaces", network_interface, None).split(",")
    values = {
        "--hostfile": hostfile,
        "--start-timeout": start_timeout,
        "--ssh-port": ssh_port,
        "--ssh-identity-file": ssh_identity_file,
        "--output-filename": output_filename,
        "--network-interfaces": ",".join(network_interfaces) if network_interfaces else None,
        "--mpi-args": mpi_args if use_mpi else None,
    }
    options = ["--as-horovod", *(["--mpi"] if use_mpi else []), *(["--verbose"] if verbose else [])]
    options += [word for name, value in values.items() if value is not None for word in (name, str(value))]
    if hosts is None and hostfile is None:
        hosts = f"localhost:{num_proc}"
    return ddl.run(func, args, kwargs, np=num_proc, hosts=hosts, options=options, python=executable)
