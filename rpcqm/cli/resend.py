"""`rpcqm resend`: send messages of a queue again, with changes if that is wanted."""

import argparse
import base64
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.cli.body_kinds import PLAIN_KINDS
from rpcqm.cli.errors import CommandError, UsageMistake, reason
from rpcqm.cli.message_choice import add_choice
from rpcqm.cli.message_orders import FollowedOrder
from rpcqm.cli.options import QUEUE_HELP, add_local_options
from rpcqm.cli.parser import Parser, add_command, amount_in, one_of, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

MAXIMUM_SECONDS = 0xFFFF_FFFE
FOR_EVER = "forever"
YES_OR_NO = {"yes": True, "no": False}
ACKNOWLEDGEMENTS = {name: name for name in ("arrival", "receive", "no-arrival", "no-receive")}
DETAILS = """\
A message is sent anew, to the queue that it was for or to another one, here or elsewhere, and
leaves its queue in the same commit; with --keep it stays. The new message has an identifier of its
own, new times, and you as its sender. What is not changed it keeps: body, label, priority,
correlation identifier, queue for answers, times (which begin anew), acknowledgements as far as its
sender may have them, tag of the application and extension. A message that is not for --to and does
not say where it was for stays.

Nothing is done to messages that come later, and what has gone meanwhile is counted. Up to 1,000
messages are one commit. What cannot be sent stays, and the command says why."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "resend",
        "Send messages of a queue again, to where they were for or elsewhere, as they are or "
        "changed.",
        [
            ("rpcqm resend 'orders;bad' --all", "back to where they were for"),
            (
                "rpcqm resend orders --lookup-id 288230376151711745 --set-label late --keep",
                "a changed copy beside the message",
            ),
            (
                "rpcqm resend DeadLetter$ --class NACK_RECEIVE_TIMEOUT --set-ttbr 1h",
                "with more time than they had",
            ),
            (r"rpcqm resend orders --label 'eu-*' --to 'there\private$\orders'", "to elsewhere"),
        ],
        run,
        DETAILS,
    )
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument("--to", metavar="QUEUE", help="another queue than the one they were for")
    parser.add_argument("--keep", action="store_true", help="the messages stay where they are, too")
    add_choice(parser, "default the first message")
    _add_changes(parser)
    add_local_options(parser)


def _add_changes(parser: Parser) -> None:
    group = parser.add_argument_group("changes")
    body = group.add_mutually_exclusive_group()
    body.add_argument(
        "--set-body", metavar="T", help="another body; text unless --set-type says so"
    )
    body.add_argument("--set-file", metavar="F", help="another body, from a file")
    group.add_argument(
        "--set-type",
        metavar="KIND",
        type=one_of({kind: kind for kind in PLAIN_KINDS}, "kind of a body"),
        help=f"what the other body is: {', '.join(PLAIN_KINDS)}",
    )
    group.add_argument("--set-label", metavar="T", help="another label")
    group.add_argument(
        "--set-priority", metavar="N", type=whole_number(0, 7, "a priority"), help="0 to 7"
    )
    for option, words in (("ttbr", "to be received"), ("ttrq", "to reach its queue")):
        group.add_argument(
            f"--set-{option}",
            metavar="S",
            type=_time_or_for_ever(),
            help=f"time in which it has {words}: seconds, `5min`, or `{FOR_EVER}`",
        )
    group.add_argument(
        "--set-correlation-id",
        metavar="ID",
        help="another correlation identifier; '' removes it",
    )
    group.add_argument("--set-response-queue", metavar="Q", help="where answers go; '' for nowhere")
    group.add_argument(
        "--set-admin-queue", metavar="Q", help="where acknowledgements go; '' for nowhere"
    )
    group.add_argument(
        "--set-ack",
        metavar="WHAT",
        action="append",
        type=one_of(ACKNOWLEDGEMENTS, "acknowledgement"),
        help=f"ask for acknowledgements, may be given again: {', '.join(ACKNOWLEDGEMENTS)}",
    )
    group.add_argument(
        "--set-application-tag",
        metavar="N",
        type=whole_number(0, 0xFFFF_FFFF, "a number"),
        help="the tag of the application",
    )
    for name, words in (
        ("recoverable", "whether it outlives a restart"),
        ("journal", "whether this queue manager's journal keeps a copy when it leaves"),
        ("dead-letter", "whether it becomes a dead letter if it cannot be delivered"),
        ("encrypt", "whether its body is encrypted on the way"),
        ("transactional", "whether it is sent in a transaction, to a queue elsewhere"),
    ):
        group.add_argument(
            f"--set-{name}", metavar="yes|no", type=one_of(YES_OR_NO, "answer"), help=words
        )


def _time_or_for_ever() -> "Callable[[str], int | str]":
    seconds = amount_in("s", 0, MAXIMUM_SECONDS, "a number of seconds")

    def parse(text: str) -> int | str:
        if text == FOR_EVER:
            return FOR_EVER
        try:
            return seconds(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}, or `{FOR_EVER}`") from None

    return parse


def run(arguments: argparse.Namespace) -> int:
    """Send them again, and say how many."""
    edits = _body(arguments)
    for name in _CHANGES:
        value = getattr(arguments, f"set_{name}")
        if value is not None:
            edits[_MEMBERS.get(name, name)] = value
    order = FollowedOrder(arguments, "resend", arguments.queue, arguments.to)
    return order.run(edits, arguments.keep)


_CHANGES = (
    *("label", "priority", "ttbr", "ttrq", "correlation_id", "response_queue", "admin_queue"),
    *("ack", "application_tag", "recoverable", "journal", "dead_letter", "encrypt"),
    "transactional",
)
_MEMBERS = {"ack": "acknowledgements"}


def _body(arguments: argparse.Namespace) -> dict[str, object]:
    """The other body, if there is one."""
    if arguments.set_body is not None:
        octets = str(arguments.set_body).encode("utf-8", "surrogateescape")
    elif arguments.set_file is not None:
        try:
            octets = Path(arguments.set_file).read_bytes()
        except OSError as error:
            raise CommandError(f"{arguments.set_file} cannot be read: {reason(error)}.") from error
    elif arguments.set_type is not None:
        raise UsageMistake("--set-type needs --set-body or --set-file beside it.")
    else:
        return {}
    from rpcqm.codec.bodies.kinds import body_of  # only now, because it takes time to load

    kind = arguments.set_type or ("text" if arguments.set_body is not None else "bytes")
    try:
        body, body_type = body_of(kind, octets)
    except ValueError as error:
        raise UsageMistake(f"--set-type {kind}: {error}.") from None
    return {"body_base64": base64.b64encode(body).decode("ascii"), "body_type": body_type}
