"""Documentation that is made from the commands and the settings themselves.

scripts/document            # write docs/commands.md, docs/limits.md, docs/library.md, the manual
                            # page docs/rpcqm.1, and the tables of docs/configuration.md,
                            # docs/architecture.md and docs/captures.md
scripts/document --check    # exit 1 and name the files that are stale
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from rpcqm.capture.frames.table import frames_table
from rpcqm.cli.main import build_parser
from rpcqm.cli.manual import manual_page
from rpcqm.cli.options import add_server_options
from rpcqm.cli.parser import Parser
from rpcqm.cli.parser_tree import argument_name, commands_of, common_groups
from rpcqm.cli.reference_entrances import entrances_table
from rpcqm.cli.reference_library import library_reference
from rpcqm.config import Configuration
from rpcqm.config.limits_reference import Bound, bounds
from rpcqm.config.schema import Setting, settings, switches

ROOT = Path(__file__).parents[2]
BEGIN = "<!-- settings: written by scripts/document -->"
END = "<!-- end of settings -->"
BEGIN_SWITCHES = "<!-- switches: written by scripts/document -->"
END_SWITCHES = "<!-- end of switches -->"
BEGIN_ROOMS = "<!-- rooms: written by scripts/document -->"
END_ROOMS = "<!-- end of rooms -->"
BEGIN_FRAMES = "<!-- frames: written by scripts/document -->"
END_FRAMES = "<!-- end of frames -->"
BEGIN_ENTRANCES = "<!-- entrances: written by scripts/document -->"
END_ENTRANCES = "<!-- end of entrances -->"
HEADING = """\
# Commands

Written by `scripts/document` from what `--help` knows. Every command exits with 0 when it is done,
1 when the queue manager refused, 2 for wrong usage, 3 when there is no queue manager to talk to,
4 when no message came in time (`receive`, `peek` and `move` of an empty queue).
"""
LIMITS_HEADING = """\
# Limits

Written by `scripts/document`. Whatever a stranger can make grow has a bound, and each bound has
tests that reach and exceed it. Those with the name of a setting can be set, the others are fixed.
`rpcqm doctor` tells which hold here, and how many connections the open files that the system allows
leave room for.

"""


def command_reference() -> str:
    """docs/commands.md."""
    return HEADING + "".join([*_sections(build_parser()), *_common_sections()])


def _sections(parser: argparse.ArgumentParser) -> Iterator[str]:
    children = list(commands_of(parser))
    for child in children:
        yield from _sections(child)
    if not children:
        yield _section(parser)


def _section(parser: argparse.ArgumentParser) -> str:
    common = [action for group in common_groups(parser) for action in group._group_actions]
    shown = [a for a in parser._actions if a.dest != "help" and a not in common]
    positional = " ".join(_name(action) for action in shown if not action.option_strings)
    usage = f"{parser.prog} {positional}".strip()
    rows = "".join(f"| `{_name(action)}` | {_help(action)} |\n" for action in shown)
    table = f"| | |\n|---|---|\n{rows}" if rows else ""
    links = "".join(f"- [{each.title}](#{_anchor(each)})\n" for each in common_groups(parser))
    examples = (parser.epilog or "").partition("\n")[2]
    parts = [f"## {usage}", parser.description or "", table, links]
    return _joined([*parts, f"```\n{_unindented(examples)}\n```"])


def _joined(parts: list[str]) -> str:
    return "".join(f"\n{part.rstrip()}\n" for part in parts if part)


def _anchor(group: "argparse._ArgumentGroup") -> str:
    return (group.title or "").replace(" ", "-")


def _common_sections() -> Iterator[str]:
    """What the groups of options that many commands have mean."""
    parser = Parser()
    add_server_options(parser)
    for group in common_groups(parser):
        rows = "".join(f"| `{_name(a)}` | {_help(a)} |\n" for a in group._group_actions)
        yield _joined([f"## {group.title}", f"| | |\n|---|---|\n{rows}"])


def _name(action: argparse.Action) -> str:
    return argument_name(action).replace("|", "\\|")


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("|", "\\|")


def _unindented(text: str) -> str:
    return "\n".join(line.removeprefix("  ") for line in text.splitlines())


def settings_table() -> str:
    """A table of the settings: name in the file, default, meaning."""
    rows = "".join(_setting_row(setting) for setting in settings())
    return f"| Setting | Default | |\n|---|---|---|\n{rows}"


def _setting_row(setting: Setting) -> str:
    default = setting.default if "`" in setting.default else f"`{setting.default}`"
    if " " in setting.default:
        default = setting.default
    return f"| `{setting.key}` | {default} | {setting.about.text} |\n"


def switches_table() -> str:
    """A table of the switches: name in the file, registry value of Windows, and what each one
    opens."""
    table = "".join(_switch_row(setting) for setting in switches())
    return f"| Switch | Registry value | What it opens |\n|---|---|---|\n{table}"


def _switch_row(setting: Setting) -> str:
    registry = f"`{setting.about.registry}`" if setting.about.registry else ""
    value = f" = `{setting.about.opens_at}`" if setting.about.opens_at else ""
    return f"| `{setting.key}`{value} | {registry} | {setting.about.opens} |\n"


def _with(text: str, begin: str, end: str, table: str) -> str:
    """The text with a table between two marks."""
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{table}{end}{rest.partition(end)[2]}"


def limits_reference() -> str:
    """docs/limits.md."""
    table = "".join(
        f"| `{bound.name}` | {_amount(bound)} | {bound.text} | {_sentence(bound.beyond)} |\n"
        for bound in bounds()
    )
    heading = "| Bound | Default | What it bounds | Beyond it |\n|---|---|---|---|\n"
    return f"{LIMITS_HEADING}{heading}{table}"


def _amount(bound: Bound) -> str:
    value = bound.value(Configuration())
    return f"{value:,}" if bound.is_setting else f"{value:,} {bound.unit} (fixed)"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def rooms_table() -> str:
    """A table of the packages with the first lines of their texts."""
    package = ROOT / "rpcqm"
    found = sorted(path.parent for path in package.rglob("__init__.py") if path.parent != package)
    rows = "".join(f"| `{room.relative_to(package)}` | {_purpose(room)} |\n" for room in found)
    return f"| Room | |\n|---|---|\n{rows}"


def _purpose(room: Path) -> str:
    docstring = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
    return docstring.partition("\n")[0]


def documents() -> dict[Path, str]:
    """The files as they should be."""
    configuration = ROOT / "docs" / "configuration.md"
    text = _with(configuration.read_text("utf-8"), BEGIN, END, settings_table())
    text = _with(text, BEGIN_SWITCHES, END_SWITCHES, switches_table())
    architecture = ROOT / "docs" / "architecture.md"
    rooms = _with(architecture.read_text("utf-8"), BEGIN_ROOMS, END_ROOMS, rooms_table())
    rooms = _with(rooms, BEGIN_ENTRANCES, END_ENTRANCES, entrances_table(ROOT))
    captures = ROOT / "docs" / "captures.md"
    frames = _with(captures.read_text("utf-8"), BEGIN_FRAMES, END_FRAMES, frames_table())
    return {
        architecture: rooms,
        captures: frames,
        ROOT / "docs" / "commands.md": command_reference(),
        ROOT / "docs" / "library.md": library_reference(),
        ROOT / "docs" / "limits.md": limits_reference(),
        configuration: text,
        ROOT / "docs" / "rpcqm.1": manual_page(build_parser()),
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the pages that have changed; with --check only name them."""
    parser = argparse.ArgumentParser(prog="document", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    stale = [
        (path, text)
        for path, text in documents().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    for path, text in stale:
        print(path.relative_to(ROOT), file=sys.stderr)
        if not check:
            path.write_text(text, "utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
