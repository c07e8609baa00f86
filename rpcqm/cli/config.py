"""`rpcqm config`: look at configuration files."""

import argparse
import base64
from pathlib import Path

from rpcqm.cli.errors import CommandError, ExitStatus
from rpcqm.cli.output import counted
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.config import ConfigurationError
from rpcqm.config.explained import explained_maps


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "config",
        help="check configuration and directory files",
        description="Check configuration and directory files.",
    )
    commands = add_commands(parser)
    checking = add_command(
        commands,
        "check",
        "Explain every mistake in a configuration file, or in a directory file.",
        [("rpcqm config check /etc/rpcqm/rpcqm.toml", "exit status 0 when it is good, 1 when not")],
        run_check,
        "Of a good configuration it tells what each map of [srmp] does.",
    )
    checking.add_argument("file", metavar="F", type=Path, help="the file")
    key = add_command(
        commands,
        "key",
        "Tell what the directory file says of an RSA key, so that others encrypt for its owner.",
        [("rpcqm config key /etc/rpcqm/key.pem --create", "make one (mode 0600) first")],
        run_key,
        "The file is the one that `binary.encryption_key` names; the line belongs into the "
        "[[queue_manager]] table of its owner.",
    )
    key.add_argument("file", metavar="F", type=Path, help="the key, in PEM form")
    key.add_argument("--create", action="store_true", help="make a key; an existing file stays")


def run_check(arguments: argparse.Namespace) -> int:
    """Tell each mistake on a line of its own, and what the maps of a good file do."""
    # Only here: it reads directories too, which takes time to load.
    from rpcqm.config.checking import check_file

    try:
        configuration = check_file(arguments.file)
    except ConfigurationError as error:
        if len(error.mistakes) == 1:
            raise CommandError(str(error)) from None
        number = counted(len(error.mistakes), "mistake")
        raise CommandError(f"{arguments.file} has {number}:\n{error}") from None
    print(f"{arguments.file} is good.")
    for sentence in explained_maps(configuration.srmp) if configuration is not None else ():
        print(sentence)
    return ExitStatus.OK


def run_key(arguments: argparse.Namespace) -> int:
    """Print the line for the directory file."""
    # Only here, because cryptography takes time to load.
    from rpcqm.binary.own_keys import create_key, load_key, published

    try:
        if arguments.create:
            create_key(arguments.file)
        key = load_key(str(arguments.file))
    except FileExistsError:
        raise CommandError(f"{arguments.file} is there already; leave out --create.") from None
    except OSError as error:
        raise CommandError(f"Cannot use {error.filename}: {error.strerror}.") from error
    except ValueError as error:
        raise CommandError(f"{error}.") from None
    print(f'encryption_key = "{base64.b64encode(published(key)).decode()}"')
    return ExitStatus.OK
