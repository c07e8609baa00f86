"""Checking files before a queue manager uses them."""

from collections.abc import Callable
from pathlib import Path

from rpcqm.config.aliases import aliases_in_directory
from rpcqm.config.console_files import read_console_files
from rpcqm.config.console_section import ConsoleSection
from rpcqm.config.directory import MAXIMUM_DIRECTORY, load_directory
from rpcqm.config.directory_schema import TABLES
from rpcqm.config.load import check, parse_toml, read_toml
from rpcqm.config.otel_files import check_otel
from rpcqm.config.remote_accounts import load_remote_accounts
from rpcqm.config.replica_section import ReplicaSection
from rpcqm.config.schema import Configuration
from rpcqm.config.srmp_section import SrmpSection
from rpcqm.config.values import ConfigurationError, Mistake


def check_file(file: Path) -> Configuration | None:
    """Check a configuration with the files that it names, or a directory file by itself.

    Returns the configuration, None for a directory. Raises ConfigurationError with every mistake.
    """
    if _is_directory(file):
        load_directory(file)
        return None
    configuration = check(file)
    mistakes = [
        *_mistakes(load_directory, configuration.directory_file),
        *_mistakes(load_remote_accounts, configuration.remote.credentials_file),
        *_srmp_mistakes(configuration.srmp),
        *_console_mistakes(configuration.console),
        *check_otel(configuration.otel),
        *_replica_mistakes(configuration.replica),
        *_alias_mistakes(configuration),
    ]
    if mistakes:
        raise ConfigurationError(mistakes)
    return configuration


def _srmp_mistakes(section: SrmpSection) -> list[Mistake]:
    """What is wrong with certificates and keys."""
    if section.certificate is None and section.verify is None:
        return []
    from rpcqm.config.srmp_files import read_srmp_files  # the module ssl takes time to load

    try:
        read_srmp_files(section)
    except ConfigurationError as error:
        return error.mistakes
    return []


def _replica_mistakes(section: ReplicaSection) -> list[Mistake]:
    """What is wrong with the log, the files that it needs, and programs."""
    if not section.log:
        return []
    from rpcqm.config.replica_files import check_replica  # the module ssl takes time to load

    return check_replica(section)


def _console_mistakes(section: ConsoleSection) -> list[Mistake]:
    try:
        read_console_files(section)
    except ConfigurationError as error:
        return error.mistakes
    return []


def _alias_mistakes(configuration: Configuration) -> list[Mistake]:
    """The further names of this computer that other queue managers of the directory have."""
    path = configuration.directory_file
    if path is None or not configuration.aliases:
        return []
    try:
        machines = load_directory(path).queue_managers
    except ConfigurationError:
        return []  # it was told with the file
    taken = aliases_in_directory(configuration.aliases, configuration.name, machines)
    return [
        Mistake("aliases", f"{alias!r} is {name} in {path}, another queue manager.")
        for alias, name in taken
    ]


def _mistakes(load: Callable[[Path], object], file: Path | None) -> list[Mistake]:
    """What is wrong with a file that may be named."""
    if file is None:
        return []
    try:
        load(file)
    except ConfigurationError as error:
        return error.mistakes
    return []


def _is_directory(file: Path) -> bool:
    """Whether a file has tables of a directory; no configuration has one of those."""
    try:
        document = parse_toml(file, read_toml(file, MAXIMUM_DIRECTORY))
    except ConfigurationError:
        return False  # the checks say what is wrong
    return any(name in document for name in TABLES)
