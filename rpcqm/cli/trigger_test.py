"""`rpcqm trigger test`: what a rule would do for the messages that are there; it does nothing."""

import argparse
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import Table, print_json
from rpcqm.cli.parser import Parser, add_command, whole_number
from rpcqm.cli.session import with_server
from rpcqm.cli.trigger_rules import listed_rule, members_of, rule_from

if TYPE_CHECKING:
    from rpcqm.client.message import ReceivedMessage
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.codec.trigger_rule import TriggerRule
    from rpcqm.triggers.evaluator import Evaluator

MOST_TRIED = 10_000
LARGEST_IDENTIFIER = (1 << 64) - 1


class _Tried(NamedTuple):
    """A message, whether the conditions hold for it, and what would be done."""

    lookup_id: int
    label: str
    holds: bool
    would: str


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "test",
        "Show what a rule would do for the messages of its queue, and do nothing.",
        [
            ("rpcqm trigger test resize", "for the first ten messages"),
            ("rpcqm trigger test resize --lookup-id 288230376151711745", "for one of them"),
        ],
        run,
    )
    parser.add_argument("name", metavar="NAME", help="name of the rule")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--lookup-id",
        metavar="N",
        type=whole_number(0, LARGEST_IDENTIFIER, "a lookup id"),
        help="only for this message",
    )
    which.add_argument(
        "--count",
        metavar="N",
        type=whole_number(1, MOST_TRIED, "a number"),
        default=10,
        help="for so many messages from the first one on (default 10)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_local_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look at the messages, and print what would be done."""
    # Only now, because they take time to load.
    from rpcqm.triggers.evaluator import Evaluator

    async def work(client: "QueueManagerClient") -> None:
        rule = rule_from(members_of(await listed_rule(client, arguments.name)))
        evaluator = Evaluator()
        try:
            tried = await _all_tried(client, rule, evaluator, arguments)
        finally:
            await evaluator.stop()
        _print(tried, arguments.json)

    return with_server(arguments, f"try the trigger `{arguments.name}`", work, True)


async def _all_tried(
    client: "QueueManagerClient",
    rule: "TriggerRule",
    evaluator: "Evaluator",
    arguments: argparse.Namespace,
) -> list[_Tried]:
    from rpcqm.cli.peeking import peeked
    from rpcqm.client.names import format_name
    from rpcqm.triggers.conditions import Conditions

    conditions, found = Conditions(rule, evaluator), list[_Tried]()
    async with client.open_reader(format_name(rule.queue), peek_only=True) as reader:
        async for message in peeked(reader, arguments.lookup_id, arguments.count):
            found.append(await _tried(rule, conditions, message))
    return found


async def _tried(rule: "TriggerRule", conditions: Any, message: "ReceivedMessage") -> _Tried:
    from rpcqm.triggers.evaluator import EvaluationError

    try:
        holds = await conditions.hold(message)
        would = _would(rule, message) if holds else ""
    except EvaluationError as error:
        holds, would = False, f"nothing: {error}"
    return _Tried(message.lookup_identifier, message.label, holds, would)


def _would(rule: "TriggerRule", message: "ReceivedMessage") -> str:
    from rpcqm.triggers.values import UnsafeValueError, arguments

    if not rule.program:
        return rule.action
    try:
        return shlex.join(arguments(rule.program, message, rule.queue))
    except UnsafeValueError as error:
        return f"fail: {error}"


def _print(tried: list[_Tried], as_json: bool) -> None:
    if as_json:
        print_json([{**each._asdict(), "lookup_id": str(each.lookup_id)} for each in tried])
        return
    if not tried:
        print("The queue is empty.")
        return
    table = Table(["LOOKUP ID", "LABEL", "HOLDS", "WOULD"])
    for each in tried:
        table.add(each.lookup_id, each.label, "yes" if each.holds else "no", each.would)
    table.print()
