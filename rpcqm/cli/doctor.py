"""`rpcqm doctor`: whether a queue manager can do its work here."""

import argparse
from pathlib import Path

from rpcqm.cli.certificate_checks import CERTIFICATE_CHECKS
from rpcqm.cli.checks import BOUNDS, CHECKS, CheckedMachine, CheckResult, Level
from rpcqm.cli.cluster_checks import CLUSTER_CHECKS
from rpcqm.cli.directory_checks import DIRECTORY_CHECKS
from rpcqm.cli.errors import ExitStatus
from rpcqm.cli.http_checks import HTTP_CHECKS
from rpcqm.cli.identity_checks import IDENTITY_CHECKS
from rpcqm.cli.name_checks import NAME_CHECKS
from rpcqm.cli.options import add_local_options, configuration
from rpcqm.cli.output import Table, counted, print_json
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.safety_checks import SAFETY_CHECKS
from rpcqm.client.ready import ENDPOINT_FILE, ReadyFile

_ALL = (
    *CHECKS,
    *NAME_CHECKS,
    *IDENTITY_CHECKS,
    *HTTP_CHECKS,
    *CERTIFICATE_CHECKS,
    *SAFETY_CHECKS,
    *DIRECTORY_CHECKS,
    *CLUSTER_CHECKS,
)

DETAILS = """\
It looks at file rights, accounts, disk, clock, limits, name resolution, ports and the switches
that lower safety, asks as a Windows client would, and looks at the log and the nodes of a cluster.
Nothing is changed. The exit status is 1 when there is a problem."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "doctor",
        "Check whether a queue manager can do its work here.",
        [
            ("rpcqm doctor", "before the first start, or when clients cannot reach it"),
            ("rpcqm doctor --config /etc/rpcqm/rpcqm.toml", "the system's service"),
        ],
        run,
        DETAILS,
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array of everything")
    parser.add_argument("--all", action="store_true", help="tell the bounds in force, too")
    add_local_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look at everything, and tell it in a table."""
    configured = configuration(arguments)
    patient = CheckedMachine(configured, _running(configured.data_dir))
    findings = [finding for check in _ALL for finding in check(patient)]
    if arguments.json:
        print_json([_for_programs(finding) for finding in findings])
    else:
        shown = [each for each in findings if arguments.all or not _is_bound(each)]
        table = Table(["", "WHAT", "FINDING"])
        for finding in shown:
            table.add(finding.level.value, finding.subject, finding.text)
        table.print()
        if hidden := len(findings) - len(shown):
            print(f"The bounds in force are {counted(hidden, 'line')} more: `rpcqm doctor --all`.")
    sick = any(finding.level is Level.PROBLEM for finding in findings)
    return ExitStatus.REFUSED if sick else ExitStatus.OK


def _is_bound(finding: CheckResult) -> bool:
    """Whether it only says what holds; a warning or a problem is always told."""
    return finding.subject == BOUNDS and finding.level is Level.GOOD


def _running(data_dir: Path) -> ReadyFile | None:
    """The ready file of the running queue manager; one that a dead process has left is ignored."""
    try:
        ready = ReadyFile.read(data_dir / ENDPOINT_FILE)
    except (OSError, ValueError):  # no file, or no whole one: nothing runs there
        return None
    return ready if Path(f"/proc/{ready.pid}").exists() else None


def _for_programs(finding: CheckResult) -> dict[str, str]:
    return {
        "subject": finding.subject,
        "level": finding.level.value,
        "text": finding.text,
    }
