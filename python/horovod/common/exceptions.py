"""Errors by Horovod's names."""
from ddl.elastic import HostsUpdatedInterrupt
from ddl.errors import Error as HorovodInternalError


def get_version_mismatch_message(name: str, version: str, installed_version: str) -> str:
    return f"{name} {version} was found, and {installed_version} when Horovod was built"


class HorovodVersionMismatchError(ImportError):
    """Horovod was built for another version of a framework. ddl is not built for one, so it is never raised."""

    def __init__(self, name: str, version: str, installed_version: str):
        super().__init__(get_version_mismatch_message(name, version, installed_version))
        self.name, self.version, self.installed_version = name, version, installed_version
