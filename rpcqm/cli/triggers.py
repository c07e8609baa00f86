"""`rpcqm triggers`: the service that runs the rules of triggers."""

import argparse
import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.cli.errors import CommandError, ExitStatus, NoServer
from rpcqm.cli.options import add_local_options, configuration
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.service import add_install_options, install, own_command
from rpcqm.cli.unit import DEFAULT_TRIGGERS_USER, triggers_files
from rpcqm.config import Configuration

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

DETAILS = """\
It runs in the foreground, logs to standard error, and stops on SIGTERM or Ctrl-C: what is under way
has ten seconds then. Programs run as the user that it runs as, queues are read with the rights of
that user. It has to be an administrator, or the account that `triggers.account` names. Of several
such services one works, and the others wait. A program that was under way when the service or the
queue manager stopped is run again for the same message."""

INSTALL_DETAILS = """\
It writes a unit that runs `rpcqm triggers run` as a user of its own, beside the queue manager of
/var/lib/rpcqm: /etc/systemd/system/rpcqm-triggers.service and /etc/sysusers.d/rpcqm-triggers.conf.
That user needs an account of the queue manager with its name, which `triggers.account` names."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "triggers",
        help="run the service of triggers",
        description="Run the service of triggers.",
    )
    commands_of_triggers = add_commands(parser)
    running = add_command(
        commands_of_triggers,
        "run",
        "Run the rules of triggers until it is stopped.",
        [
            ("rpcqm triggers run", "for the queue manager of this machine"),
            ("rpcqm triggers run --data-dir /var/lib/rpcqm", "for another one"),
        ],
        run,
        DETAILS,
    )
    add_local_options(running)
    installing = add_command(
        commands_of_triggers,
        "install",
        "Install the service of triggers for systemd.",
        [
            ("rpcqm triggers install --now", "install and start it"),
            ("rpcqm triggers install --print", "look at the unit, install nothing"),
        ],
        run_install,
        INSTALL_DETAILS,
    )
    add_install_options(installing, DEFAULT_TRIGGERS_USER)


def run_install(arguments: argparse.Namespace) -> int:
    """Write the unit and the user, then have systemd read them."""
    command = own_command()
    files = triggers_files(command, arguments.user)
    return install(arguments, command, files, "rpcqm-triggers")


def run(arguments: argparse.Namespace) -> int:
    """Run the rules until a signal."""
    settings = configuration(arguments)
    # Only now, because they take time to load.
    from rpcqm.base import log
    from rpcqm.base.errors import MQError
    from rpcqm.client.target import ServerUnreachableError

    log.configure(settings.logging.level, log.is_json(settings.logging.format))
    os.umask(0o077)
    try:
        asyncio.run(_serve(settings))
    except ServerUnreachableError as error:
        raise NoServer(str(error)) from error
    except MQError as error:
        raise CommandError(
            "Cannot run triggers: only administrators may, and the account that "
            f"`triggers.account` names ({error.status.name}); run it as root or as the queue "
            "manager's own user, or name the account of this user in the configuration."
        ) from error
    return ExitStatus.OK


async def _serve(settings: Configuration) -> None:
    from rpcqm.base.clock import SystemClock
    from rpcqm.service.notify import READY, STOPPING, notify
    from rpcqm.triggers.actions import Actions
    from rpcqm.triggers.evaluator import Evaluator
    from rpcqm.triggers.trigger_service import TriggerService

    clock, data_dir = SystemClock(), settings.data_dir
    actions, evaluator = Actions(clock), Evaluator()
    service = TriggerService(lambda: _client(data_dir), actions, evaluator, clock, asyncio.sleep)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stop)
    notify(READY)
    try:
        await service.run()
    finally:
        notify(STOPPING)
        await evaluator.stop()
        await actions.stop()


def _client(data_dir: Path) -> "QueueManagerClient":
    """A client of the queue manager that runs on a directory, wherever its socket is now."""
    from rpcqm.client.mq import local_server
    from rpcqm.client.queue_manager import QueueManagerClient

    return QueueManagerClient(local_server(data_dir))
