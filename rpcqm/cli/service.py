"""`rpcqm service`: run a queue manager as a service of the system."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rpcqm.cli.errors import CommandError, ExitStatus, UsageMistake
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.unit import DEFAULT_USER, ServiceFile, service_files

DETAILS = """\
It writes a hardened unit that runs `rpcqm serve` as a user of its own, which may open ports below
1024 and nothing else of root's: /etc/systemd/system/rpcqm.service, the user in
/etc/sysusers.d/rpcqm.conf, and /etc/rpcqm/rpcqm.toml unless there is one. Messages go to
/var/lib/rpcqm. With --root nothing is run: the files are for an image."""

UNSEEN = ("/tmp", "/var/tmp")
"""What PrivateTmp= hides."""

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,30}")


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "service",
        help="install the system's service",
        description="Run a queue manager as a service of the system.",
    )
    installing = add_command(
        add_commands(parser),
        "install",
        "Install the service for systemd.",
        [
            ("rpcqm service install --now", "install and start it"),
            ("rpcqm service install --print", "look at the unit, install nothing"),
        ],
        run_install,
        DETAILS,
    )
    add_install_options(installing, DEFAULT_USER)


def _user(text: str) -> str:
    if not _USER.fullmatch(text) or text == "root":
        raise argparse.ArgumentTypeError(f"`{text}` is no name for a user of its own")
    return text


def run_install(arguments: argparse.Namespace) -> int:
    """Write the files, then have systemd read them."""
    command = own_command()
    files = service_files(command, arguments.user)
    return install(arguments, command, files, "rpcqm")


def add_install_options(parser: Parser, user: str) -> None:
    """Add what installing a service can be told."""
    parser.add_argument("--user", metavar="NAME", type=_user, default=user, help="who it runs as")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--now", action="store_true", help="start it, and at every boot")
    how.add_argument("--print", action="store_true", help="only print the unit")
    how.add_argument("--root", metavar="D", type=Path, help="write below this directory")


def install(
    arguments: argparse.Namespace, command: Path, files: Sequence[ServiceFile], name: str
) -> int:
    """Write the files of a service, whose unit is the last one, and have systemd read them."""
    if arguments.print:
        print(files[-1].text, end="")
        return ExitStatus.OK
    if arguments.root is None and os.geteuid() != 0:
        raise UsageMistake("Installing a service takes root; --root and --print do without.")
    if arguments.root is None and any(map(command.is_relative_to, UNSEEN)):
        raise CommandError(
            f"{command} is in a directory for temporary files, which the service does not see; "
            "install rpcqm elsewhere, such as in /opt/rpcqm."
        )
    for file in files:
        _write(file, arguments.root or Path("/"))
    if arguments.root is None:
        _tell_systemd(arguments.now, name)
    return ExitStatus.OK


def own_command() -> Path:
    """The `rpcqm` of this installation."""
    beside = Path(sys.executable).parent / "rpcqm"
    found = str(beside) if beside.exists() else shutil.which("rpcqm")
    if found is None:
        raise CommandError("There is no command `rpcqm` to run as a service; install it with pip.")
    return Path(found).absolute()


def _write(file: ServiceFile, root: Path) -> None:
    path = root / file.path.relative_to("/")
    if file.kept and path.exists():
        print(f"{path} is kept as it is.")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(file.text, "utf-8")
    path.chmod(0o644)
    print(f"{path} is written.")


def _tell_systemd(now: bool, name: str) -> None:
    _system("systemd-sysusers", f"/etc/sysusers.d/{name}.conf")
    _system("systemctl", "daemon-reload")
    if now:
        _system("systemctl", "enable", "--now", f"{name}.service")
        print(f"The service runs; `systemctl status {name}` tells how it is.")
    else:
        print(f"Start it with `systemctl enable --now {name}`.")


def _system(*words: str) -> None:
    try:
        outcome = subprocess.run(words, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        raise CommandError(
            f"There is no `{words[0]}` here, so the files are written and nothing runs yet."
        ) from None
    if outcome.returncode:
        said = outcome.stderr.strip().splitlines()
        why = f": {said[0].rstrip('.')}" if said else ""
        raise CommandError(f"The files are written, but `{' '.join(words)}` failed{why}.")
