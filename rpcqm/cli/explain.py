"""`rpcqm explain`: the meaning of a code, or the places and the past of a message."""

import argparse
import contextlib

from rpcqm.cli.codes import Code, find_codes, similar_names
from rpcqm.cli.errors import CommandError, ExitStatus, UsageMistake
from rpcqm.cli.message_search import explain_message
from rpcqm.cli.options import add_server_options
from rpcqm.cli.output import print_fields, print_json
from rpcqm.cli.parser import Parser, add_command
from rpcqm.codec.packet.types import MessageIdentifier

DETAILS = """\
A message is looked for in every queue, in journals, dead letters and what is on its way; what
happened to it is told as far as its queues had event trails (`rpcqm queue set QUEUE --trail`).
Looking takes a few seconds for a million messages, and longer over --server, where every one
has to be fetched.
A code is the number or the name of a result (HRESULT or NTSTATUS), of an RPC fault, or of a
message's class. Numbers are hexadecimal with 0x, or decimal, also signed as .NET prints them."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "explain",
        "Explain a code, or what became of a message.",
        [
            ("rpcqm explain 0xC00E0025", "a result by its number"),
            ("rpcqm explain -- -1072824283", "the same, as .NET prints it"),
            ("rpcqm explain nack_q_purged", "the class of an acknowledgement"),
            (
                r"rpcqm explain '{b612fe70-822d-4a0a-bb8c-fa25e3950d10}\1'",
                "a message, by what `rpcqm send` printed",
            ),
        ],
        run,
        DETAILS,
    )
    parser.add_argument(
        "subject", metavar="SUBJECT", help="a number, a name, or the identifier of a message"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print everything that the code may stand for, or all that is known of the message."""
    identifier = _message_identifier(arguments.subject)
    if identifier is not None:
        return explain_message(arguments, identifier)
    if "\\" in arguments.subject:
        raise UsageMistake(
            f"`{arguments.subject}` is no identifier of a message; those are like "
            r"`{b612fe70-822d-4a0a-bb8c-fa25e3950d10}\1`, with quotes around for the shell."
        )
    found = find_codes(arguments.subject)
    if not found:
        raise _unknown(arguments.subject)
    if arguments.json:
        print_json([_for_programs(code) for code in found])
        return ExitStatus.OK
    for number, code in enumerate(found):
        if number:
            print()
        print_fields(_for_people(code))
    return ExitStatus.OK


def _message_identifier(subject: str) -> MessageIdentifier | None:
    with contextlib.suppress(ValueError):
        return MessageIdentifier.parse(subject)
    return None


def _unknown(subject: str) -> CommandError:
    names = similar_names(subject)
    hint = f"; did you mean {' or '.join(f'`{name}`' for name in names)}?" if names else "."
    return CommandError(f"No code is known as `{subject}`{hint}")


def _for_programs(code: Code) -> dict[str, object]:
    return {
        "kind": code.kind,
        "name": code.name,
        "value": code.value,
        "meaning": code.meaning,
        "remedy": code.remedy or None,
    }


def _for_people(code: Code) -> dict[str, object]:
    shown: dict[str, object] = {"Name": code.name, "Number": _numbers(code.value)}
    shown |= {"Kind": code.kind, "Meaning": code.meaning}
    if code.remedy:
        shown["What to do"] = code.remedy
    return shown


def _numbers(value: int) -> str:
    """A code as programs show it: hexadecimal, decimal, and signed if it is negative."""
    if value < 0x8000_0000:
        return f"0x{value:08X}, {value}"
    return f"0x{value:08X}, {value}, {value - (1 << 32)}"
