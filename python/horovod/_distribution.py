"""Where this package lies: pip installs a file over that of another distribution without a word."""
from importlib.metadata import distributions
from pathlib import Path


def refuse_to_share_a_folder() -> None:
    """Raises ImportError if Horovod is installed in the folder of this package, too: some files are Horovod's, then."""
    folder = Path(__file__).resolve().parent.parent
    for found in distributions(name="horovod", path=[str(folder)]):
        raise ImportError(
            f"Horovod {found.version} and ddl-horovod are both installed in {folder}, and have written over each"
            " other's files: pip uninstall horovod ddl-horovod, and install the one that you want. To run scripts by"
            " ddl beside an installed Horovod, install ddlrun alone, and start them with ddlrun --as-horovod"
        )
