"""`rpcqm export --definitions` and `rpcqm apply`: a queue manager's definitions as one file."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.errors import MQError, RpcFault
from rpcqm.base.files import private_draft
from rpcqm.base.text import visible
from rpcqm.cli import definitions_file
from rpcqm.cli.definitions_here import look
from rpcqm.cli.definitions_plan import NotHereError, Step, plan
from rpcqm.cli.errors import CommandError, ExitStatus, UsageMistake, reason
from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import counted
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

STANDARD = "-"
EXPORTED = """\
The file has queues with their settings and permissions, accounts without passwords, the permissions
of the queue manager itself, and rules of triggers; not messages (`rpcqm queue export`), tokens, nor
what the configuration says, such as routes. Two files differ where the definitions do."""
APPLIED = """\
What the file says is made so, step by step; what it does not mention stays as it is, or goes with
--prune (but a queue with messages stays). Applied once more, or after a failure, only what is
missing is done. The exit status is 5 when --plan finds a difference, and 1 when something could not
be made so."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add both commands to the parser."""
    _add_export(commands)
    _add_apply(commands)


def _add_export(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "export",
        "Write the definitions of the queue manager to a file.",
        [
            ("rpcqm export --definitions rpcqm-definitions.toml", "to be kept beside the code"),
            ("rpcqm export --definitions | diff rpcqm-definitions.toml -", "what has changed"),
        ],
        run_export,
        EXPORTED,
    )
    parser.add_argument(
        "--definitions", action="store_true", help="of queues, accounts, permissions and triggers"
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=STANDARD, help="the file; - is standard output"
    )
    add_local_options(parser)


def _add_apply(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "apply",
        "Make queues, accounts, permissions and triggers as a file of definitions says.",
        [
            ("rpcqm apply rpcqm-definitions.toml --plan", "what differs; changes nothing"),
            ("rpcqm apply rpcqm-definitions.toml", "make it so"),
            ("rpcqm apply rpcqm-definitions.toml --prune --plan", "what else would go"),
        ],
        run_apply,
        APPLIED,
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="what `rpcqm export` has written")
    parser.add_argument("--plan", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--prune", action="store_true", help="remove what is here and not in the file, too"
    )
    add_local_options(parser)


def run_export(arguments: argparse.Namespace) -> int:
    """Write the file, whole or not at all."""
    if not arguments.definitions:
        raise UsageMistake(
            "`rpcqm export` writes definitions: say --definitions. Messages are exported by "
            "`rpcqm queue export`."
        )
    untold: list[str] = []

    async def work(client: "QueueManagerClient") -> None:
        here = await look(client)
        untold.extend(here.untold)
        _write(arguments.file, definitions_file.written(here.definitions))

    with_server(arguments, "export the definitions", work, administrators_only=True)
    for name in untold:
        print(
            f"rpcqm: `{visible(name)}` is left out: its permissions do not let you see what it is; "
            f"`rpcqm queue acl owner {visible(name)} administrators` takes it over.",
            file=sys.stderr,
        )
    return ExitStatus.REFUSED if untold else ExitStatus.OK


def _write(file: str, text: str) -> None:
    if file == STANDARD:
        print(text, end="")
        return
    path = Path(file)
    try:
        with private_draft(path) as opened:
            opened.write(text.encode())
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {reason(error)}.") from error


def run_apply(arguments: argparse.Namespace) -> int:
    """Compare, and make what differs as the file says."""
    wanted = definitions_file.read(arguments.file)
    outcome = [ExitStatus.OK]

    async def work(client: "QueueManagerClient") -> None:
        here = await look(client)
        steps = plan(wanted, here, prune=arguments.prune)
        if not steps:
            print("Nothing to do: everything is as the file says.")
        elif arguments.plan:
            outcome[0] = _tell(steps)
        else:
            outcome[0] = await _carry_out(client, steps)

    with_server(arguments, f"apply {arguments.file}", work, administrators_only=True)
    return outcome[0]


def _tell(steps: list[Step]) -> ExitStatus:
    for step in steps:
        print(visible(f"{'would' if step.act else 'cannot'}: {step.sentence}"))
    done = counted(len([step for step in steps if step.act]), "change")
    print(f"{done} to make; nothing was changed.")
    return ExitStatus.DIFFERS


async def _carry_out(client: "QueueManagerClient", steps: list[Step]) -> ExitStatus:
    """Do what can be done; what was refused does not keep the rest from being done."""
    made, left = 0, 0
    for step in steps:
        why = await _done(client, step)
        made, left = made + (not why), left + bool(why)
        print(visible(f"{'done' if not why else 'left'}: {step.sentence}{why}"))
    print(f"{counted(made, 'change')} made, {left:,} left.")
    return ExitStatus.REFUSED if left else ExitStatus.OK


async def _done(client: "QueueManagerClient", step: Step) -> str:
    """Do a step; returns "", or the rest of a sentence that says why it was not done."""
    if step.act is None:
        return "; not done"
    try:
        await step.act(client)
    except NotHereError as error:
        return f"; not done, because {error}"
    except MQError as error:
        detail = f", {error.detail}" if error.detail else ""
        meaning = error.status.meaning.rstrip(".")
        return f"; not done: {meaning}{detail} ({error.status.name})"
    except RpcFault as error:
        return f"; not done: {error}"
    return ""
