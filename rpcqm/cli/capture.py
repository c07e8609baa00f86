"""`rpcqm capture`: look at recorded traffic."""

import argparse
import gc
import importlib.util
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.text import folded, visible
from rpcqm.cli import replay
from rpcqm.cli.capture_file import accounts_of, add_file, guarded, read
from rpcqm.cli.errors import CommandError, ExitStatus, UsageMistake
from rpcqm.cli.output import Table, counted, json_line
from rpcqm.cli.parser import Parser, add_command, add_commands

if TYPE_CHECKING:
    from rpcqm.capture.analysis import Exchange
    from rpcqm.capture.conversation.call import Conversation
    from rpcqm.capture.filtering import Filter


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "capture",
        help="look at recorded traffic",
        description="Look at recorded traffic: pcap, pcapng, Network Monitor 2, also gzip or zstd.",
    )
    inner = add_commands(parser)
    _add_show(inner)
    _add_export(inner)
    replay.add(inner)
    _add_dissector(inner)


def _add_show(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "show",
        "List the calls of a capture, and its conversations.",
        [
            ("rpcqm capture show trace.pcapng", "one line per call"),
            ("rpcqm capture show trace.pcapng --interface RemoteRead --full", "every field"),
            ("rpcqm capture show trace.pcapng --account 'CORP\\ann:secret' --json", "unsealed"),
        ],
        _show,
        "A damaged capture is read as far as it can be; what is wrong is told on standard error.",
    )
    add_file(parser)
    _add_filters(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--full", action="store_true", help="print every field with its offset")
    form.add_argument("--json", action="store_true", help="print one JSON object per call")


def _add_export(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "export",
        "Write the calls of a capture to a file for other programs.",
        [("rpcqm capture export trace.pcapng --format parquet --output calls.parquet", "columns")],
        _export,
    )
    add_file(parser)
    _add_filters(parser)
    parser.add_argument(
        "--format", choices=("jsonl", "parquet"), default="jsonl", help="the format (jsonl)"
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="where to write; standard output for jsonl"
    )


def _add_dissector(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "dissector",
        "Write a Wireshark dissector for the interfaces and the binary protocol.",
        [
            (
                "rpcqm capture dissector --output rpcqm.lua",
                "then: wireshark -X lua_script:rpcqm.lua",
            ),
        ],
        _dissector,
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="where to write (standard output)"
    )


def _add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters, each may be given more than once")
    for option, metavar, meaning in (
        ("--interface", "NAME", "only calls of this interface, by name or UUID"),
        ("--opnum", "N", "only calls of this method, by number or name"),
        ("--status", "CODE", "only calls that ended so, by name or number"),
        ("--queue", "TEXT", "only calls about queues with this in their name"),
        (
            "--message-id",
            "ID",
            "only calls about the message of this identifier, or of this \\number",
        ),
    ):
        group.add_argument(option, metavar=metavar, action="append", default=[], help=meaning)


def filter_of(arguments: argparse.Namespace) -> "Filter":
    """The filter that the options ask for; UsageMistake."""
    from rpcqm.capture.filtering import Filter, status_of, without_braces
    from rpcqm.codec.names.format_name import without_prefix

    try:
        statuses = {status_of(text) for text in arguments.status}
    except ValueError:
        raise UsageMistake(f"--status {arguments.status[-1]} is no status.") from None
    lower = [{text.lower() for text in texts} for texts in (arguments.interface, arguments.opnum)]
    queues = {folded(without_prefix(text)) for text in arguments.queue}
    messages = {without_braces(text) for text in arguments.message_id}
    return Filter(lower[0], lower[1], statuses, queues, messages)


class _Shown:
    """Prints calls as they come, and counts them for the list of conversations."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from rpcqm.capture.conversation.subjects import Subjects

        self.wanted = filter_of(arguments)
        self.conversations: list[Conversation] = []
        self.calls: Counter[int] = Counter()
        self.sealed: Counter[int] = Counter()
        self._all = self.wanted.empty
        self._subjects = Subjects()
        self._print = self._printer(arguments)

    def _printer(self, arguments: argparse.Namespace) -> "Callable[[Exchange, str], None]":
        from rpcqm.capture import report

        write = sys.stdout.write
        if arguments.json:
            return lambda exchange, _: _none(write(json_line(report.as_object(exchange)) + "\n"))
        if arguments.full:
            return lambda exchange, queue: _none(write(_in_full(exchange, queue)))
        return lambda exchange, queue: _none(write(visible(report.line(exchange, queue)) + "\n"))

    def __call__(self, exchange: "Exchange") -> None:
        queue = self._subjects.queue(exchange)
        if self._all or self.wanted.lets_through(exchange, queue):
            number = exchange.conversation.number
            self.calls[number] += 1
            self.sealed[number] += exchange.sealed
            self._print(exchange, queue)


def _none(written: int) -> None:
    """Drop the number of characters that a write returns."""


def _in_full(exchange: "Exchange", queue: str) -> str:
    from rpcqm.capture.report import full, line

    return "".join(f"{visible(text)}\n" for text in (line(exchange, queue), *full(exchange)))


def _show(arguments: argparse.Namespace) -> int:
    # Calls come and go by the million, and none of them is part of a cycle.
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    whole = not (arguments.json or arguments.full) and filter_of(arguments).empty
    if whole and importlib.util.find_spec("pyarrow") and importlib.util.find_spec("numpy"):
        return _show_columns(arguments)
    shown = _Shown(arguments)
    read(arguments.file, shown, accounts_of(arguments), shown.conversations.append)
    if not arguments.json:
        _print_conversations(shown.conversations, shown.calls, shown.sealed)
        if shown.wanted.empty:
            _print_without_calls(shown.conversations, shown.calls)
    return ExitStatus.OK


def _show_columns(arguments: argparse.Namespace) -> int:
    """The same list, much faster."""
    from rpcqm.capture.columnar.analysis import analyse_columns
    from rpcqm.capture.columnar.listing import Listing

    listing = Listing(sys.stdout.write, visible)
    conversations: list[Conversation] = []
    accounts = accounts_of(arguments)
    guarded(
        arguments.file,
        lambda problems: analyse_columns(
            arguments.file, listing.take, problems, accounts, conversations.append
        ),
    )
    _print_conversations(conversations, listing.calls, listing.sealed)
    _print_without_calls(conversations, listing.calls)
    return ExitStatus.OK


def _print_conversations(
    conversations: "list[Conversation]", calls: Counter[int], sealed: Counter[int]
) -> None:
    seen = [each for each in conversations if calls[each.number]]
    print(f"\n{counted(calls.total(), 'call')} in {counted(len(seen), 'conversation')}")
    if not seen:
        return
    table = Table([">#", "CLIENT", "SERVER", "PROTOCOL", ">LEVEL", "ACCOUNT", ">CALLS", ">SEALED"])
    for each in seen:
        number = each.number
        table.add(
            *(number, each.client, each.server, each.protocol, each.level, each.account or "-"),
            *(calls[number], sealed[number]),
        )
    table.print()


def _print_without_calls(conversations: "list[Conversation]", calls: Counter[int]) -> None:
    found = [each for each in conversations if not calls[each.number]]
    if not found:
        return
    print(f"\n{counted(len(found), 'conversation')} without a call")
    table = Table([">#", "CLIENT", "SERVER", "PROTOCOL", "LEVEL", "ACCOUNT", "WHY"])
    for each in found:
        parts = each.number, each.client, each.server, each.protocol, each.level
        table.add(*parts, each.account or "-", each.without_calls)
    table.print()


def _export(arguments: argparse.Namespace) -> int:
    from rpcqm.capture.export import exporter

    if arguments.format == "parquet" and arguments.output is None:
        raise UsageMistake("--format parquet needs --output FILE.")
    if arguments.format == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise CommandError("--format parquet needs pyarrow: pip install 'rpcqm[spark]'.")
    wanted, accounts = filter_of(arguments), accounts_of(arguments)
    with exporter(arguments.format, arguments.output) as write:
        read(arguments.file, _filtered(wanted, write), accounts)
    return ExitStatus.OK


def _filtered(
    wanted: "Filter", write: "Callable[[Exchange, str], None]"
) -> "Callable[[Exchange], None]":
    from rpcqm.capture.conversation.subjects import Subjects

    subjects = Subjects()

    def take(exchange: "Exchange") -> None:
        queue = subjects.queue(exchange)
        if wanted.lets_through(exchange, queue):
            write(exchange, queue)

    return take


def _dissector(arguments: argparse.Namespace) -> int:
    from rpcqm.capture.dissector import dissector

    text = dissector()
    if arguments.output is None:
        print(text, end="")
    else:
        arguments.output.write_text(text, "utf-8")
    return ExitStatus.OK
