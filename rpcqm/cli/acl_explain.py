"""`rpcqm acl explain`: what an account may do here, and by which entry."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpcqm.base.errors import MQError, NtStatus
from rpcqm.base.text import visible
from rpcqm.cli.errors import CommandError
from rpcqm.cli.options import QUEUE_HELP, add_local_options, queue_name
from rpcqm.cli.output import Table, print_json
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

SUMMARY = "Tell what an account may do, and by which entry of the permissions."
DETAILS = """\
Every right is asked of the check that decides when somebody uses the queue: what the owner and
administrators always may comes first, then the entries in their order. The first entry that
concerns the account or one of its groups decides; entries for others, for what is made below only
(inherited only) and of kinds that queues do not have (unsupported) decide nothing.

Administrators may ask for everybody, others for themselves and for groups."""
_ACCOUNT_HELP = "an account, a group such as everyone or anonymous, or a SID"
_CONCERNS = {
    "counts": "yes",
    "others": "no, for others",
    "inherited only": "no, inherited only",
    "unsupported": "no, unsupported",
}
_STEPS = {
    "privilege": "administrators",
    "owner": "the owner",
    "no list": "no list of entries",
}


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add `acl` with this one command, by which it is found without its object."""
    parser = commands.add_parser(
        "acl",
        help="tell what an account may do with a queue, and by which entry",
        description=SUMMARY,
    )
    examples = [
        ("rpcqm acl explain orders alice", "everything that alice may and may not do"),
        ("rpcqm acl explain orders anonymous", "whoever has not logged on"),
    ]
    add_explain(add_commands(parser), examples, of_queue=True)


def add_explain(
    commands: "argparse._SubParsersAction[Parser]",
    examples: list[tuple[str, str]],
    *,
    of_queue: bool,
) -> None:
    """Add the command to those about permissions of a queue, or of the queue manager."""
    parser = add_command(commands, "explain", SUMMARY, examples, run_explain, DETAILS)
    if of_queue:
        parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument("who", metavar="ACCOUNT", help=_ACCOUNT_HELP)
    parser.add_argument(
        "--token", metavar="NAME", default="", help="as the bearer of this token of the account"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_local_options(parser)


def run_explain(arguments: argparse.Namespace) -> int:
    """Print each right with its reason, and what each entry has to do with it."""
    queue: str | None = getattr(arguments, "queue", None)
    name = None if queue is None else queue_name(arguments, queue)
    subject = "the queue manager" if queue is None else f"`{queue}`"

    async def work(client: "QueueManagerClient") -> None:
        try:
            told = await client.maintenance.explain_access(name, arguments.who, arguments.token)
        except MQError as error:
            raise _unknown(error, arguments) from error
        if arguments.json:
            print_json(told)
        else:
            _print(told, subject)

    return with_server(arguments, f"explain the permissions of {subject}", work)


def _unknown(error: MQError, arguments: argparse.Namespace) -> Exception:
    """The sentence about an account or a token that is not there; else the error itself."""
    if error.status is NtStatus.STATUS_NO_SUCH_USER:
        said = f"There is no account `{arguments.who}` here that you may ask for; give"
        return CommandError(f"{said} {_ACCOUNT_HELP}.")
    if error.status is NtStatus.STATUS_OBJECT_NAME_NOT_FOUND:
        said = f"{arguments.who} has no token `{arguments.token}`; `rpcqm token list` names all."
        return CommandError(said)
    return error


def _print(told: Mapping[str, Any], subject: str) -> None:
    groups = ", ".join(told["groups"]) or "no group"
    bearer = f", by the token {told['token']}" if told["token"] else ""
    print(visible(f"{told['account']} ({groups}){bearer}, with {subject}:"))
    print()
    rights = Table(["RIGHT", "MAY", "WHY"])
    for each in told["rights"]:
        rights.add(each["right"], "yes" if each["granted"] else "no", each["why"])
    rights.print()
    print()
    entries = Table([">ENTRY", "EFFECT", "WHO", "RIGHTS", "COUNTS"])
    for each in told["steps"]:
        entries.add(
            "-" if each["entry"] is None else each["entry"],
            each["effect"],
            _STEPS.get(each["reason"], each["name"] or ""),
            ", ".join(each["rights"]) or "nothing",
            _CONCERNS[each["concern"]],
        )
    entries.print()
