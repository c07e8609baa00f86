"""`rpcqm explain`: what a code means."""

import argparse

from rpcqm.cli.codes import Code, find_codes, similar_names
from rpcqm.cli.errors import CommandError, ExitStatus
from rpcqm.cli.output import print_fields, print_json
from rpcqm.cli.parser import Parser, add_command

DETAILS = """\
A code is the number or the name of a result (HRESULT or NTSTATUS), of an RPC fault, or of a
message's class. Numbers are hexadecimal with 0x, or decimal, also signed as .NET prints them."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "explain",
        "Explain a code.",
        [
            ("rpcqm explain 0xC00E0025", "a result by its number"),
            ("rpcqm explain -- -1072824283", "the same, as .NET prints it"),
            ("rpcqm explain nack_q_purged", "the class of an acknowledgement"),
        ],
        run,
        DETAILS,
    )
    parser.add_argument("subject", metavar="CODE", help="a number or a name")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print everything that the code may stand for."""
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
    """The number as it may be met: hexadecimal, decimal, and signed where it is negative."""
    if value < 0x8000_0000:
        return f"0x{value:08X}, {value}"
    return f"0x{value:08X}, {value}, {value - (1 << 32)}"
