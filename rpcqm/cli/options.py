"""Options that many commands share, and the queue manager that they lead to."""

import argparse
import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.errors import MQError
from rpcqm.cli.errors import CommandError, NoServer, UsageMistake
from rpcqm.cli.parser import Parser
from rpcqm.client.names import HERE, DoubtedName, format_name
from rpcqm.client.ready import ENDPOINT_FILE, ReadyFile
from rpcqm.client.target import (
    ENDPOINT_MAPPER_PORT,
    LocalServer,
    RemoteServer,
    Target,
    any_of,
    host_and_port,
)
from rpcqm.codec.names.format_name import FormatName
from rpcqm.config import Configuration, ConfigurationError, load

if TYPE_CHECKING:
    from rpcqm.rpc.security.context import Credentials

PASSWORD_VARIABLE = "RPCQM_PASSWORD"
QUEUE_HELP = (
    r"path name (`orders` for short, `.\private$\orders`, `orders;late`, `DeadLetter$`) or format "
    "name (`DIRECT=…`)"
)


def add_local_options(parser: Parser) -> None:
    """Add options that name a queue manager of this machine."""
    group = parser.add_argument_group("queue manager")
    group.add_argument(
        "--data-dir",
        metavar="D",
        type=Path,
        help="data directory of a queue manager on this machine (or RPCQM_DATA_DIR; default var)",
    )
    group.add_argument(
        "--config", metavar="F", type=Path, help="its configuration file (or RPCQM_CONFIG)"
    )
    parser.set_defaults(
        server=None, user=None, password_stdin=False, kerberos=False, principal=None
    )


def add_server_options(parser: Parser) -> None:
    """Add options that name a queue manager of this machine or another one."""
    add_local_options(parser)
    group = parser.add_argument_group("over the network")
    group.add_argument(
        "--server",
        metavar="HOST[:PORT]",
        type=server_address,
        help=f"a queue manager by its endpoint mapper (port {ENDPOINT_MAPPER_PORT}); of several "
        "with commas between, nodes of one queue manager, the first that answers",
    )
    group.add_argument(
        "--user",
        metavar="NAME",
        help=rf"account there, NAME or DOMAIN\NAME; asks for the password (or {PASSWORD_VARIABLE})",
    )
    group.add_argument(
        "--password-stdin", action="store_true", help="read the password from standard input"
    )
    group.add_argument(
        "--kerberos",
        action="store_true",
        help="log on with the ticket of `kinit` instead (the extra `kerberos` is needed)",
    )
    group.add_argument(
        "--principal",
        metavar="NAME",
        help="the server's name in Kerberos (default host/HOST)",
    )


class ServerAddress(tuple[str, int]):
    """Host and port of a server; `others` are those of further nodes of the queue manager."""

    others: tuple[tuple[str, int], ...] = ()


def server_address(text: str) -> ServerAddress:
    """What `--server` names, for argparse."""
    try:
        first, *others = map(host_and_port, text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    address = ServerAddress(first)
    address.others = tuple(others)
    return address


def queue_name(arguments: argparse.Namespace, text: str) -> FormatName:
    """The queue that an argument names; UsageMistake when it is no name."""
    try:
        return format_name(text, arguments.server[0] if arguments.server else HERE)
    except DoubtedName as error:
        raise UsageMistake(
            f"`{text}` does not name a queue ({error.status.name}){error.reason}"
        ) from None
    except MQError as error:
        reason = error.status.meaning.rstrip(".").replace("The ", "the ", 1)
        raise UsageMistake(
            f"`{text}` does not name a queue: {reason} ({error.status.name}); write `orders`, "
            r"`.\private$\orders` or `DIRECT=OS:host\private$\orders`; a name has up to 124 "
            'characters, none of them `\\`, `;`, `+`, `,` or `"`.'
        ) from None


def explain_mistakes(error: ConfigurationError) -> str:
    """The end of a sentence: the one mistake, or how many there are and each on its line."""
    if len(error.mistakes) == 1:
        return f": {error}"
    return f"; it has {len(error.mistakes)} mistakes:\n{error}"


def configuration(arguments: argparse.Namespace) -> Configuration:
    """The configuration in force for a command; UsageMistake with every mistake."""
    try:
        return load({"data_dir": arguments.data_dir}, arguments.config)
    except ConfigurationError as error:
        raise UsageMistake(f"The configuration cannot be used{explain_mistakes(error)}") from None


def target(arguments: argparse.Namespace) -> Target:
    """The queue manager that the options name.

    Raises UsageMistake if they contradict each other, NoServer if no queue manager runs on this
    machine.
    """
    if arguments.server is not None:
        if arguments.data_dir is not None:
            raise UsageMistake("--server and --data-dir do not go together.")
        credentials, address = _credentials(arguments), arguments.server
        nodes = (tuple(address), *getattr(address, "others", ()))
        return any_of([RemoteServer(host, port, credentials) for host, port in nodes])
    if arguments.user is not None or arguments.password_stdin:
        raise UsageMistake("--user needs --server: on this machine no password is asked for.")
    if arguments.kerberos or arguments.principal is not None:
        raise UsageMistake("--kerberos needs --server: on this machine nobody has to log on.")
    return _local_server(configuration(arguments).data_dir)


def _local_server(data_dir: Path) -> LocalServer:
    path = data_dir / ENDPOINT_FILE
    try:
        return LocalServer(ReadyFile.read(path).socket)
    except FileNotFoundError:
        raise NoServer(
            f"No queue manager runs on {data_dir}; start one with "
            f"`rpcqm serve --data-dir {data_dir}`, or name another with --data-dir or --server."
        ) from None
    except (OSError, ValueError) as error:
        raise NoServer(f"{path} cannot be read: {error}.") from None


def _credentials(arguments: argparse.Namespace) -> "Credentials | None":
    if arguments.kerberos:
        return _kerberos_credentials(arguments)
    if arguments.principal is not None:
        raise UsageMistake("--principal needs --kerberos.")
    if arguments.user is None:
        if arguments.password_stdin:
            raise UsageMistake("--password-stdin needs --user.")
        return None
    domain, _, name = arguments.user.rpartition("\\")
    if not name:
        raise UsageMistake("--user is empty.")
    # Only now, because few commands need it and it takes time to load.
    from rpcqm.rpc.security.ntlm import NtlmCredentials

    return NtlmCredentials(name, _password(arguments), domain)


def _kerberos_credentials(arguments: argparse.Namespace) -> "Credentials":
    if arguments.user is not None or arguments.password_stdin:
        raise UsageMistake("--kerberos and --user do not go together: the ticket has a name.")
    try:
        # Only now, because few have it.
        from rpcqm.rpc.security.kerberos import KerberosCredentials
    except ImportError:
        raise CommandError(
            "--kerberos needs the package gssapi, which is not installed: "
            "`pip install 'rpcqm[kerberos]'`."
        ) from None
    return KerberosCredentials(arguments.principal or "")


def _password(arguments: argparse.Namespace) -> str:
    if arguments.password_stdin:
        return read_password_line()
    if PASSWORD_VARIABLE in os.environ:
        return os.environ[PASSWORD_VARIABLE]
    return ask_password(f"Password of {arguments.user}: ")


def read_password_line() -> str:
    """The first line of standard input."""
    line = sys.stdin.readline()
    if not line:
        raise UsageMistake("Standard input holds no password.")
    return line.rstrip("\r\n")


def ask_password(prompt: str) -> str:
    """Ask for a password at the terminal, without echo; raises UsageMistake without a terminal."""
    if not sys.stdin.isatty():
        raise UsageMistake("There is no terminal to ask for the password; use --password-stdin.")
    try:
        return getpass.getpass(prompt)
    except EOFError:
        raise CommandError("No password was given.") from None
