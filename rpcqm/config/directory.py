"""The static directory: a TOML file that says what other queue managers there are.

    [enterprise]
    name = "example"

    [[site]]
    name = "Berlin"
    gates = ["ROUTER1"]

    [[routing_link]]
    sites = ["Berlin", "Paris"]
    cost = 10

    [[queue_manager]]
    name = "ROUTER1"
    identifier = "6b29fc40-ca47-1067-b31d-00dd010662da"
    sites = ["Berlin"]
    routing_server = true

    [[queue]]
    path = 'ROUTER1\\orders'
    identifier = "5d1f8a2e-4c3b-4a19-8e7d-6f5c4b3a2918"

    [[user]]
    name = "alice"
    sid = "S-1-5-21-1-2-3-1001"

    [[distribution_list]]
    name = "everybody"
    identifier = "f0e1d2c3-b4a5-4687-9a8b-7c6d5e4f3a2b"
    members = ['DIRECT=OS:server1\\private$\\orders']

    [[queue_alias]]
    name = "shop"
    format_name = 'DIRECT=OS:server1\\private$\\orders'
    full_path = "CN=shop,OU=aliases,DC=example,DC=org"

Sites, links, users and aliases need no identifier: one follows from their names.
"""

from pathlib import Path

from rpcqm.adm.directory import DirectoryContents, DirectoryUnavailableError
from rpcqm.base.log import get_logger
from rpcqm.config.directory_objects import DirectoryObjectReader
from rpcqm.config.load import parse_toml, read_toml
from rpcqm.config.values import ConfigurationError

MAXIMUM_DIRECTORY = 16 << 20
"""Size of a directory file.

Bound `file.directory_octets` [octets]: the file is refused in one sentence.
"""

_log = get_logger("config")


def load_directory(path: Path) -> DirectoryContents:
    """The contents of a directory file; raises ConfigurationError with every mistake."""
    text = read_toml(path, MAXIMUM_DIRECTORY)
    return DirectoryObjectReader(path, text).read(parse_toml(path, text))


class DirectoryFile:
    """A directory source that reads its file again when it has changed.

    If the changed file has mistakes, they are logged once and the old contents stay. If the file
    cannot be read, the directory is unavailable until it can.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; raises ConfigurationError with every mistake."""
        self._path = path
        self._contents = load_directory(path)
        self._seen = self._version()

    @property
    def version(self) -> tuple[object, ...]:
        """A value that differs whenever the contents may differ."""
        return (self._path, *self._seen)

    def _version(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def __call__(self) -> DirectoryContents:
        """The present contents; raises DirectoryUnavailableError."""
        try:
            version = self._version()
        except OSError as error:
            raise DirectoryUnavailableError(f"{self._path}: {error.strerror}") from error
        if version != self._seen:
            self._seen = version
            try:
                self._contents = load_directory(self._path)
            except ConfigurationError as error:
                _log.warning("the directory file has mistakes", mistakes=str(error))
        return self._contents
