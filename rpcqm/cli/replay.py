"""`rpcqm capture replay`: play the clients of a capture against a server."""

import argparse
import asyncio
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.files import private_draft
from rpcqm.base.text import visible
from rpcqm.cli.capture_file import accounts_of, add_file, read
from rpcqm.cli.errors import CommandError, ExitStatus, NoServer, explain
from rpcqm.cli.options import server_address
from rpcqm.cli.output import ProgressDisplay
from rpcqm.cli.parser import Parser, add_command

if TYPE_CHECKING:
    from rpcqm.capture.analysis import Exchange
    from rpcqm.capture.replay.fixture import Fixture
    from rpcqm.capture.replay.outcome import Result, Server
    from rpcqm.capture.unsealing.accounts import UnsealingAccount
    from rpcqm.client.target import Target
    from rpcqm.testing.private import PrivateQueueManager

_NOBODY = "anonymous logon"

DETAILS = """\
Handles, cursors, lookup identifiers, ports and message identifiers are translated from captured
to live ones; calls that waited wait again, and cancels come while they do. Each field of each
answer is compared, but for times and addresses. Exit status 0 when all calls were answered alike,
1 when not."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "replay",
        "Play the clients of a capture against a server, and compare its answers.",
        [
            ("rpcqm capture replay trace.pcapng --in-process", "against a fresh queue manager"),
            ("rpcqm capture replay trace.pcapng --server msmq.example.com --fixture", "Windows"),
        ],
        run,
        DETAILS,
    )
    add_file(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--server",
        metavar="HOST[:PORT]",
        type=server_address,
        help="the server's endpoint mapper",
    )
    where.add_argument(
        "--in-process", action="store_true", help="a fresh queue manager, gone afterwards"
    )
    parser.add_argument(
        "--binary-port",
        metavar="N",
        type=int,
        default=1801,
        help="the port of the server's binary protocol (1801)",
    )
    parser.add_argument(
        "--http-port",
        metavar="N",
        type=int,
        default=80,
        help="the port at which the server takes messages over HTTP (80)",
    )
    parser.add_argument(
        "--fixture",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="create the queues and send the messages that the capture presupposes "
        "(always with --in-process)",
    )
    parser.add_argument(
        "--speed",
        metavar="X",
        type=_speed,
        default=0.0,
        help="`captured`, a factor of it, or `max` (max)",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result as JSON")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write it as JUnit XML")


def _speed(text: str) -> float:
    named = {"captured": 1.0, "max": 0.0}
    try:
        value = named[text] if text in named else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"`{text}` is no speed; give `captured`, `max` or 2.5")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Play it, tell what differed; exit status 1 when something did."""
    from rpcqm.capture.replay import report as replay_report
    from rpcqm.capture.replay.fixture import infer

    accounts = accounts_of(arguments)
    exchanges: list[Exchange] = []
    read(arguments.file, exchanges.append, accounts)
    fixture = infer(exchanges)
    with _server(arguments, exchanges, accounts) as (server, target, logons):
        if arguments.fixture or (arguments.in_process and arguments.fixture is None):
            _prepare(fixture, target)
        result = _played(exchanges, server, logons, arguments.speed)
    for line in replay_report.lines(result):
        print(visible(line))
    notes = fixture.notes
    told = replay_report.as_object(result, str(arguments.file), server.host, notes)
    if arguments.json is not None:
        _write(arguments.json, json.dumps(told, indent=2) + "\n")
    if arguments.junit is not None:
        _write(arguments.junit, replay_report.junit(result, str(arguments.file)))
    return ExitStatus.OK if result.clean else ExitStatus.REFUSED


def _write(path: Path, text: str) -> None:
    """A report holds what messages held, so it is for its owner alone."""
    with private_draft(path) as file:
        file.write(text.encode())


def _played(
    exchanges: "list[Exchange]", server: "Server", accounts: "list[UnsealingAccount]", speed: float
) -> "Result":
    import uvloop

    from rpcqm.capture.replay.player import Replay

    with ProgressDisplay("Played", len(exchanges)) as progress:
        replay = Replay(exchanges, server, accounts, speed, progress.advance_to)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(replay.run())
        except OSError as error:
            # asyncio's own words hold Python's form of the address.
            number = error.errno or 0
            told = os.strerror(number) if number > 0 else str(error)
            reason = told[:1].lower() + told[1:]
            raise NoServer(f"{server.host} cannot be reached: {reason}.") from None


def _prepare(fixture: "Fixture", target: "Target") -> None:
    from rpcqm.base.errors import DecodeError, MQError, RpcFault
    from rpcqm.capture.replay.fixture import prepare
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.target import ServerUnreachableError

    async def work() -> None:
        async with QueueManagerClient(target) as client:
            await prepare(fixture, client)

    try:
        asyncio.run(work())
    except (MQError, RpcFault, DecodeError) as error:
        raise CommandError(explain(error, "The fixture cannot be prepared")) from None
    except ServerUnreachableError as error:
        raise NoServer(str(error)) from None


@contextmanager
def _server(
    arguments: argparse.Namespace, exchanges: "list[Exchange]", accounts: "list[UnsealingAccount]"
) -> "Iterator[tuple[Server, Target, list[UnsealingAccount]]]":
    """Where to play, how to prepare it, and who logs on there."""
    if arguments.in_process:
        with _fresh(exchanges) as found:
            yield found
        return
    from rpcqm.capture.replay.outcome import Server
    from rpcqm.client.target import RemoteServer

    host, port = arguments.server
    credentials = None
    logons = [account for account in accounts if account.hashes]
    if logons:
        from rpcqm.rpc.security.ntlm import NtlmCredentials

        first = logons[0]
        credentials = NtlmCredentials(first.name, domain=first.domain, nt_hash=first.hashes[-1])
    address = host if host.replace(".", "").isdigit() else "127.0.0.1"
    server = Server(host, port, ".", address, arguments.binary_port, arguments.http_port)
    yield server, RemoteServer(host, port, credentials), logons


@contextmanager
def _fresh(
    exchanges: "list[Exchange]",
) -> "Iterator[tuple[Server, Target, list[UnsealingAccount]]]":
    """A queue manager of its own that takes the levels, interfaces and users of the capture."""
    from rpcqm.capture.conversation.call import MC_MQSRM, NCACN_IP_TCP, CapturedCall
    from rpcqm.capture.replay.objects import is_of_objects, is_served_unsigned
    from rpcqm.capture.replay.outcome import Server
    from rpcqm.capture.replay.player import is_local
    from rpcqm.client.target import LocalServer
    from rpcqm.testing.private import private_queue_manager

    remote = [
        each
        for each in exchanges
        if each.protocol == NCACN_IP_TCP and not is_local(each.conversation)
    ]
    interfaces = {each.interface_name for each in remote}
    plain = any(each.conversation.level < 6 for each in remote)
    dependent = "qmcomm" in interfaces or "qmcomm2" in interfaces
    security = f"""\
[security]
allow_nonauthenticated_rpc = {str(plain).lower()}
allow_unprotected_rpc = {str(plain).lower()}
supporting_server = {str(dependent).lower()}
"""
    users = {each.conversation.account for each in exchanges if each.conversation.level > 1}
    names = sorted({user.rpartition("\\")[2].lower() for user in users} - {"", _NOBODY})
    of_objects = [each for each in remote if isinstance(each, CapturedCall) and is_of_objects(each)]
    if of_objects:
        level = "connect" if any(map(is_served_unsigned, of_objects)) else "integrity"
        security += f'[dcom]\nenabled = true\nminimum_level = "{level}"\n'
    # Only sending queue managers knock there, and most captures have none.
    posts = any(each.protocol == MC_MQSRM for each in exchanges)
    configuration = f"http_port = 0\n{security}" if posts else security
    with private_queue_manager(configuration=configuration) as made:
        logons = [_add_account(made, name) for name in names]
        host, port = made.endpoint("epm")
        binary_port = made.endpoint("binary")[1]
        http_port = made.endpoint("http")[1] if posts else 0
        server = Server(
            host, port, binary_port=binary_port, http_port=http_port, socket=made.socket
        )
        yield server, LocalServer(made.socket), logons


def _add_account(made: "PrivateQueueManager", name: str) -> "UnsealingAccount":
    """An administrator, so that access is what the captured server granted at best."""
    from rpcqm.capture.unsealing.accounts import parse_account

    password = secrets.token_hex(12)
    words = ("user", "add", name, "--password-stdin", "--group", "administrators")
    made.run(*words, input=password + "\n")
    return parse_account(f"{name}:{password}")
