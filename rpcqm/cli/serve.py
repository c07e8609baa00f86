"""`rpcqm serve`: run a queue manager."""

import argparse
import functools
import importlib
from pathlib import Path

from rpcqm.cli.errors import CommandError, ExitStatus, UsageMistake
from rpcqm.cli.options import explain_mistakes
from rpcqm.cli.parser import Parser, add_command, whole_number
from rpcqm.config import ConfigurationError, load
from rpcqm.config.about import PORTS
from rpcqm.config.schema import Setting, settings

DETAILS = """\
It runs in the foreground, logs to standard error and stops on SIGTERM or Ctrl-C. A port of 0
picks a free one; a negative port switches that listener off. Options win over the environment, and
that over the configuration file. On SIGHUP it reads all files again (configuration, directory,
accounts, keys) and takes over what has changed, without dropping a connection. The name, the data
directory, addresses and ports change at the next start only; the log names those that wait. If one
of the files has a mistake, nothing changes."""

NOT_OPTIONS = {"name", "aliases"}
METAVARS = {"data_dir": "D", "host": "A", "ready_file": "F"}


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "serve",
        "Run a queue manager.",
        [
            ("rpcqm serve", "on loopback, with its data in ./var"),
            (
                "rpcqm serve --data-dir /var/lib/rpcqm --host 0.0.0.0 --epm-port 135",
                "for Windows clients, which ask at port 135",
            ),
            (
                "rpcqm serve --epm-port 0 --rpc-port 0 --ready-file ready.json",
                "on free ports, for tests",
            ),
        ],
        run,
        DETAILS,
    )
    parser.add_argument(
        "--config", metavar="F", type=Path, help="configuration file (or RPCQM_CONFIG)"
    )
    parser.add_argument(
        "--capture",
        metavar="FILE",
        type=Path,
        help="record what is served as pcapng, unsealed; for tests and bug reports only",
    )
    for setting in settings():
        if len(setting.path) == 1 and setting.key not in NOT_OPTIONS:
            _add_option(parser, setting)


def _add_option(parser: Parser, setting: Setting) -> None:
    ports = setting.about.between == PORTS
    default = setting.default.replace("`", "")
    parser.add_argument(
        "--" + setting.key.replace("_", "-"),
        metavar=METAVARS.get(setting.key, "N"),
        type=whole_number(*PORTS, "a port") if ports else setting.kind,
        help=f"{setting.about.text.rstrip('.').replace('`', '')} (default {default})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal stops it; the exit status is 0 after a clean stop."""
    options = {setting.key: getattr(arguments, setting.key, None) for setting in settings()}
    configured = functools.partial(load, options, arguments.config)
    try:
        configuration = configured()
    except ConfigurationError as error:
        raise UsageMistake(f"The configuration cannot be used{explain_mistakes(error)}") from None
    # Only this command needs the server, whose modules take longest to load.
    service = importlib.import_module("rpcqm.service")
    try:
        service.serve(configuration, configured, arguments.capture)
    except service.StartError as error:
        raise CommandError(str(error)) from error
    return ExitStatus.OK
