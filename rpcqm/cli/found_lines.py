"""Messages that were found, as people see them: one line for each."""

import shutil
import sys
from typing import Any

from rpcqm.base.text import visible
from rpcqm.cli.output import aligned, cut, size_text, told_time

_COLUMNS = (("LOOKUP ID", 18), ("ARRIVED", 19), ("PRI", 3), ("SIZE", 10), ("LABEL", 20))
_QUEUE = ("QUEUE", 16)


class Lines:
    """Lines on standard output, aligned as they come; on a terminal they end where it does."""

    def __init__(self, with_queue: bool) -> None:
        self._with_queue, self._headed = with_queue, False
        self._columns = (_QUEUE, *_COLUMNS) if with_queue else _COLUMNS

    def write(self, message: dict[str, Any]) -> None:
        """Print a message as /api/v1 tells it."""
        if not self._headed:
            self._headed = True
            self._print([name for name, _ in self._columns], "BODY")
        cells = [
            message["lookup_id"],
            told_time(message["arrived"]),
            str(message["priority"]),
            size_text(message["body_size"]),
            message["label"],
        ]
        self._print([message["queue"], *cells] if self._with_queue else cells, _said(message))

    def _print(self, cells: list[str], last: str) -> None:
        line = aligned([visible(cell) for cell in cells], self._columns, visible(last))
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(line if width is None else cut(line, width), flush=True)


def _said(message: dict[str, Any]) -> str:
    """The body on one line, behind the class of a message that is not an ordinary one."""
    body = " ".join(str(message.get("body") or "").split())
    if message["class"] == "NORMAL":
        return body
    return f"{message['class']}: {body}" if body else str(message["class"])
