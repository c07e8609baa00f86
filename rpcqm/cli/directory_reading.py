"""`rpcqm directory test`, `show` and `export`: what a directory says of queues and machines."""

import argparse
import importlib.util
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.adm.directory import DIRECTORY_ATTRIBUTES, DirectoryContents
from rpcqm.adm.directory_object import (
    DirectoryObject,
    DistributionList,
    QueueAlias,
    RoutingLink,
    Site,
    User,
)
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import DecodeError
from rpcqm.cli.errors import CommandError, ExitStatus, UsageMistake
from rpcqm.cli.options import add_local_options, configuration
from rpcqm.cli.output import Table, print_fields, print_json
from rpcqm.cli.parser import Parser, add_command
from rpcqm.config.directory import load_directory
from rpcqm.config.values import ConfigurationError

if TYPE_CHECKING:
    from rpcqm.cli.directory_steps import Step
    from rpcqm.config import Configuration
    from rpcqm.directory.process import DirectoryProcess

SERVER, REPLICA, FILE = "server", "replica", "file"
KINDS: dict[str, tuple[type[DirectoryObject], tuple[str, ...]]] = {
    "machines": (QueueManager, ("computer_name", "identifier", "qualified_computer_name")),
    "queues": (Queue, ("pathname", "identifier", "label")),
    "sites": (Site, ("name", "identifier", "foreign_site")),
    "links": (RoutingLink, ("description", "identifier", "actual_cost")),
    "users": (User, ("security_identifier", "identifier")),
    "lists": (DistributionList, ("name", "identifier", "format_names")),
    "aliases": (QueueAlias, ("name", "identifier", "format_name")),
}
"""What can be shown, and the columns of its table."""
TEST = """\
It finds a controller, logs on with the machine's account, reads everything once, and says what may
be done with the queue manager's own object: each step with the time that it took, and with what
helps if it fails. Nothing is changed."""
SHOW = """\
Without a kind it tells how many objects there are. `replica` is what the queue manager has kept on
its disk, `server` asks a controller now, `file` is `directory_file`."""
EXPORT = """\
The output can be a `directory_file`: of queue managers that have no directory of their own, or for
the time after a domain."""


def add_orders(orders: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands that read."""
    test = add_command(
        orders,
        "test",
        "Try each step on the way to the directory.",
        [("rpcqm directory test", "with the settings that `rpcqm serve` has")],
        run_test,
        TEST,
    )
    test.add_argument("--json", action="store_true", help="print a JSON array of the steps")
    add_local_options(test)
    show = add_command(
        orders,
        "show",
        "Show what the directory has.",
        [
            ("rpcqm directory show", "how much there is, and how old it is"),
            ("rpcqm directory show queues --from server", "as a controller says now"),
        ],
        run_show,
        SHOW,
    )
    show.add_argument("kind", nargs="?", choices=(*KINDS, "me"), help="what to show")
    show.add_argument("--json", action="store_true", help="print all attributes as JSON")
    export = add_command(
        orders,
        "export",
        "Write what the directory has as a directory file.",
        [("rpcqm directory export | tee directory.toml", "what was read last")],
        run_export,
        EXPORT,
    )
    for parser in (show, export):
        parser.add_argument(
            "--from",
            dest="source",
            choices=(SERVER, REPLICA, FILE),
            default=REPLICA,
            help="where it is read from (default: replica)",
        )
        add_local_options(parser)


# test


def run_test(arguments: argparse.Namespace) -> int:
    """Go the steps, and print each."""
    steps = steps_of(configuration(arguments))
    if arguments.json:
        print_json([_plain(each) for each in steps])
    else:
        table = Table(["STEP", ">MS", "FINDING"])
        for step in steps:
            table.add(step.name, f"{step.seconds * 1000:.0f}", step.text)
        table.print()
        for step in steps:
            if step.remedy:
                print(f"{step.name}: {step.remedy}")
    return ExitStatus.REFUSED if any(step.failed for step in steps) else ExitStatus.OK


def steps_of(configured: "Configuration") -> "list[Step]":
    """Each step on the way to the directory; raises CommandError if none can be gone."""
    _with_domain(configured)
    from rpcqm.cli.directory_steps import Examination, with_process

    async def work(process: "DirectoryProcess") -> "list[Step]":
        return [step async for step in Examination(configured, process).steps()]

    return with_process(configured, work)


def _plain(step: "Step") -> dict[str, object]:
    return {
        "step": step.name,
        "ok": not step.failed,
        "milliseconds": round(step.seconds * 1000),
        "finding": step.text,
        "remedy": step.remedy,
    }


def _with_domain(configured: "Configuration") -> "Configuration":
    if not configured.directory.domain:
        raise UsageMistake("`directory.domain` is not set, so there is no directory to ask.")
    for module in ("ldap", "gssapi"):
        if importlib.util.find_spec(module) is None:
            raise CommandError(f"{module} is not installed: install rpcqm[directory].")
    return configured


# show


def run_show(arguments: argparse.Namespace) -> int:
    """Print objects, or how many there are."""
    configured = configuration(arguments)
    contents, age = _contents(configured, arguments.source)
    if arguments.kind is None:
        counts = {name: len(list(contents.of(kind))) for name, (kind, _) in KINDS.items()}
        shown: dict[str, object] = {**counts, "age_seconds": round(age)}
        print_json(shown) if arguments.json else print_fields(shown)
        return ExitStatus.OK
    if arguments.kind == "me":
        return _show_me(configured, contents)
    kind, columns = KINDS[arguments.kind]
    found: list[DirectoryObject] = list(contents.of(kind))
    if arguments.json:
        print_json([_attributes(each) for each in found])
        return ExitStatus.OK
    table = Table([each.replace("_", " ").upper() for each in columns])
    for each in found:
        table.add(*(_text(getattr(each, name)) for name in columns))
    table.print()
    return ExitStatus.OK


def _show_me(configured: "Configuration", contents: DirectoryContents) -> int:
    found = contents.having(QueueManager, "computer_name", configured.name)
    if not found:
        raise CommandError(f"The directory has no queue manager {configured.name}.")
    print_json([_attributes(each) for each in found])
    return ExitStatus.OK


def _contents(configured: "Configuration", source: str) -> tuple[DirectoryContents, float]:
    """What a source has, and how many seconds old it is."""
    if source == FILE:
        return _of_file(configured.directory_file), 0.0
    _with_domain(configured)
    return _of_server(configured) if source == SERVER else _of_replica(configured)


def _of_file(path: Path | None) -> DirectoryContents:
    if path is None:
        raise UsageMistake("`directory_file` is not set.")
    try:
        return load_directory(path)
    except ConfigurationError as error:
        raise CommandError(f"The directory file cannot be used: {error}") from None


def _of_replica(configured: "Configuration") -> tuple[DirectoryContents, float]:
    from rpcqm.directory.kept import NAME, read_kept

    path = configured.data_dir / NAME
    try:
        kept = read_kept(path, configured.directory.domain)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except DecodeError as error:
        raise CommandError(f"{path}: {error}.") from None
    if kept is None:
        raise CommandError("Nothing of this domain was kept yet; --from server asks a controller.")
    return kept.contents, max(0.0, time.time() - kept.read_at)


def _of_server(configured: "Configuration") -> tuple[DirectoryContents, float]:
    from rpcqm.cli.directory_steps import with_process
    from rpcqm.directory.process import DirectoryError
    from rpcqm.directory.reading import DirectoryReader
    from rpcqm.service.directory_source import directory_settings

    async def work(process: "DirectoryProcess") -> DirectoryContents:
        reader = DirectoryReader(directory_settings(configured), process)
        await reader.connect()
        return await reader.read_all()

    try:
        return with_process(configured, work), 0.0
    except DirectoryError as error:
        raise CommandError(
            f"The directory is not read: {error}. See `rpcqm directory test`."
        ) from None


def _attributes(element: DirectoryObject) -> dict[str, object]:
    kind = next(each for each in DIRECTORY_ATTRIBUTES if isinstance(element, each))
    names = (each for each in DIRECTORY_ATTRIBUTES[kind] if each != "security")
    return {name: _json(getattr(element, name)) for name in names}


def _json(value: object) -> object:
    if isinstance(value, list):
        return [_json(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID):
        return str(value)
    return value.name if isinstance(value, Enum) else value


def _text(value: object) -> str:
    plain = _json(value)
    return ", ".join(map(str, plain)) if isinstance(plain, list) else str(plain)


# export


def run_export(arguments: argparse.Namespace) -> int:
    """Write the tables of a directory file."""
    from rpcqm.config.directory_export import directory_file

    contents, _ = _contents(configuration(arguments), arguments.source)
    for line in directory_file(contents):
        print(line)
    return ExitStatus.OK
