"""Checking files before a queue manager uses them."""

import tomllib
from pathlib import Path

from rpcqm.config.directory import load_directory
from rpcqm.config.directory_schema import TABLES
from rpcqm.config.load import check


def check_file(file: Path) -> None:
    """Check a configuration with its directory file, or a directory file by itself.

    Raises ConfigurationError with every mistake.
    """
    if _is_directory(file):
        load_directory(file)
        return
    directory = check(file).directory_file
    if directory is not None:
        load_directory(directory)


def _is_directory(file: Path) -> bool:
    """Whether a file has tables of a directory; no configuration has one of those."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return False  # the checks say what is wrong
    return any(name in document for name in TABLES)
