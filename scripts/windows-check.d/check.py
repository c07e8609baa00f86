"""The command of scripts/windows-check."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from questions import ReportError, questions, read_report
from reading import differs, page

DIFFERENT, UNREADABLE = 1, 2


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/windows-check", description="What only a Windows machine can tell."
    )
    order = parser.add_mutually_exclusive_group(required=True)
    order.add_argument("--read", metavar="FILE", type=Path, help="compare its answers with ours")
    order.add_argument("--serve", action="store_true", help="be the other side of check.ps1")
    parser.add_argument("--data-dir", metavar="D", help="of the queue manager that serves")
    return parser.parse_args(words)


def read(path: Path) -> int:
    """Print where a file differs; 1 if it does anywhere, 2 if it cannot be read."""
    try:
        report = read_report(path.read_text("ascii"))
    except (OSError, UnicodeDecodeError, ReportError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return UNREADABLE
    asked = questions()
    for line in page(asked, report):
        print(line)
    return DIFFERENT if differs(asked, report) else 0


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    arguments = _arguments(words)
    if arguments.read:
        return read(arguments.read)
    # Only now, because reading needs no client.
    from serving import serve

    return serve(arguments.data_dir)


if __name__ == "__main__":
    sys.exit(main())
