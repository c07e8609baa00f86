"""`rpcqm explain`: a code, what became of a message, or what is on its way to a queue elsewhere."""

import argparse
import contextlib
from typing import TYPE_CHECKING

from rpcqm.cli import outgoing
from rpcqm.cli.errors import CommandError, ExitStatus, UsageMistake
from rpcqm.cli.message_search import explain_message
from rpcqm.cli.options import add_server_options, queue_name, target
from rpcqm.cli.output import Table, print_fields, print_json
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server
from rpcqm.client.ready import ENDPOINT_FILE, ReadyFile
from rpcqm.client.target import LocalServer
from rpcqm.codec.names.written import is_format_name
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.http.statuses import status_of_code, status_table
from rpcqm.operations.codes import Code, find_codes, similar_names

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

MESSAGES = """\
A message is looked for in every queue, in journals, dead letters and what is on its way. What
happened to it is told as far as its queues had event trails (`rpcqm queue set QUEUE --trail`); by
which hops the last 10,000 messages were sent, and which acknowledgements of them came, is known
without. Looking takes a few seconds for a million messages, and longer over --server, where every
one has to be fetched.
Of a queue elsewhere it shows what still waits, the next hop, how connecting went, and which
acknowledgements have come."""
DETAILS = f"""\
{MESSAGES}
A code is the number or the name of a result (HRESULT or NTSTATUS), of an RPC fault, or of a
message's class. Numbers are hexadecimal with 0x, or decimal, also signed as .NET prints them;
eight digits without 0x may be hexadecimal. A text may have other words: the first code in it
counts."""
EARLIER_DETAILS = f"""\
This is the earlier spelling of `rpcqm explain`, which does the same and knows codes as well.
{MESSAGES}"""
STATUS_TABLE = "statuses"
A_MESSAGE = (
    r"'{b612fe70-822d-4a0a-bb8c-fa25e3950d10}\1'",
    "a message, by what `rpcqm send` printed",
)
A_QUEUE = (r"'DIRECT=OS:other\private$\orders'", "what was sent to a queue elsewhere")


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser, and its earlier spelling."""
    _add_explain(commands)
    _add_earlier_spelling(commands)


def _add_explain(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "explain",
        "Explain a code, what became of a message, or what is on its way to a queue elsewhere.",
        [
            ("rpcqm explain 0xC00E0025", "a result by its number"),
            ("rpcqm explain -- -1072824283", "the same, as .NET prints it"),
            (f"rpcqm explain {STATUS_TABLE}", "the statuses by which /api/v1 tells them"),
            ("rpcqm explain nack_q_purged", "the class of an acknowledgement"),
            *((f"rpcqm explain {subject}", meaning) for subject, meaning in (A_MESSAGE, A_QUEUE)),
        ],
        run,
        DETAILS,
    )
    parser.add_argument(
        "subject",
        metavar="SUBJECT",
        help="the number or the name of a code, the identifier of a message, or a queue elsewhere",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_server_options(parser)


def _add_earlier_spelling(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add `rpcqm trace`, which scripts may go on using."""
    parser = add_command(
        commands,
        "trace",
        "Tell what became of a message, or what is on its way to a queue elsewhere.",
        [(f"rpcqm trace {subject}", meaning) for subject, meaning in (A_MESSAGE, A_QUEUE)],
        run_earlier_spelling,
        EARLIER_DETAILS,
    )
    parser.add_argument(
        "subject", metavar="QUEUE-OR-ID", help="the identifier of a message, or a queue elsewhere"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_server_options(parser)


def run_earlier_spelling(arguments: argparse.Namespace) -> int:
    """Explain a message or a queue; a single word is a queue here."""
    identifier = _message_identifier(arguments.subject)
    if identifier is not None:
        return explain_message(arguments, identifier)
    return _explain_queue(arguments)


def run(arguments: argparse.Namespace) -> int:
    """Print everything that the code may stand for, or all that is known of message or queue."""
    identifier = _message_identifier(arguments.subject)
    if identifier is not None:
        return explain_message(arguments, identifier)
    if arguments.subject.startswith("{"):
        raise UsageMistake(
            f"`{arguments.subject}` is no identifier of a message; those are like "
            r"`{b612fe70-822d-4a0a-bb8c-fa25e3950d10}\1`, with quotes around for the shell."
        )
    if set(arguments.subject) & set("\\=") and not _is_text_with_code(arguments):
        return _explain_queue(arguments)
    if arguments.subject == STATUS_TABLE:
        return _print_statuses(arguments.json)
    return _explain_code(arguments)


def _is_text_with_code(arguments: argparse.Namespace) -> bool:
    """Whether a text names no queue, and has a code in it: `hr=0xC00E0003`."""
    subject = arguments.subject
    try:
        queue_name(arguments, subject)
    except UsageMistake:
        return bool(find_codes(subject))
    is_elsewhere = "\\" in subject or is_format_name(subject)
    return not is_elsewhere and bool(find_codes(subject))


def _explain_queue(arguments: argparse.Namespace) -> int:
    """Print what is on its way to a queue elsewhere."""
    name = queue_name(arguments, arguments.subject)

    async def work(client: "QueueManagerClient") -> None:
        found = await client.management.outgoing_queue(name)
        if found is None:
            raise CommandError(
                f"Nothing was sent from here to `{arguments.subject}` lately; `rpcqm queue list "
                "--outgoing` lists where messages are on their way to."
            )
        is_off = name.is_http and _http_is_off(arguments)
        outgoing.print_one(found, arguments.json, is_off=is_off)

    purpose = f"tell what is on its way to `{arguments.subject}`"
    return with_server(arguments, purpose, work, administrators_only=True)


def _http_is_off(arguments: argparse.Namespace) -> bool:
    """Whether a queue manager of this machine has no port for messages over HTTP."""
    server = target(arguments)
    if not isinstance(server, LocalServer):
        return False
    try:
        running = ReadyFile.read(server.socket.with_name(ENDPOINT_FILE))
    except (OSError, ValueError):  # it has stopped just now
        return False
    return not running.endpoints.keys() & {"http", "https"}


def _explain_code(arguments: argparse.Namespace) -> int:
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
        "http_status": status_of_code(code.name),
    }


def _for_people(code: Code) -> dict[str, object]:
    shown: dict[str, object] = {"Name": code.name, "Number": _numbers(code.value)}
    shown |= {"Kind": code.kind, "Meaning": code.meaning}
    if code.remedy:
        shown["What to do"] = code.remedy
    status = status_of_code(code.name)
    if status is not None:
        shown["By HTTP"] = f"{status.value} {status.phrase} (/api/v1)"
    return shown


def _print_statuses(as_json: bool) -> int:
    """The table by which /api/v1 answers refusals."""
    if as_json:
        rows = status_table()
        print_json([{"code": row.code.name, "http_status": int(row.status)} for row in rows])
        return ExitStatus.OK
    table = Table(["STATUS", "CODE", "MEANING"])
    table.add("400 Bad Request", "every other one", "The request asks for what cannot be.")
    for status, code, meaning in status_table():
        table.add(f"{status.value} {status.phrase}", code.name, meaning)
    table.print()
    return ExitStatus.OK


def _numbers(value: int) -> str:
    """A code as programs show it: hexadecimal, decimal, and signed if it is negative."""
    if value < 0x8000_0000:
        return f"0x{value:08X}, {value}"
    return f"0x{value:08X}, {value}, {value - (1 << 32)}"
