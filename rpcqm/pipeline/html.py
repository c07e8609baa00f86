"""Reports: one HTML page with plots and tables that can be sorted, and the same as JSON.

The page is one file that asks for nothing from elsewhere, with the look of the console.
"""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rpcqm.base.look import style
from rpcqm.base.text import visible

_SCRIPT = """
document.querySelectorAll("thead th").forEach(th => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...th.childNodes);
  th.append(button);
  button.onclick = () => {
    const table = th.closest("table"), body = table.tBodies[0], column = th.cellIndex;
    const up = th.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("th").forEach(each => each.removeAttribute("aria-sort"));
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    [...body.rows].sort((a, b) => {
      const x = key(a), y = key(b), n = x - y;
      return (up ? 1 : -1) * (isNaN(n) ? x.localeCompare(y) : n);
    }).forEach(row => body.append(row));
  };
});
"""
_BAR, _LABELS, _WIDTH, _LETTER = 22, 300, 900, 7
_WORDS = {"rows_in": "Read", "rows_out": "Written", "rejected": "Rejected", "seconds": "Seconds"}
"""What the parts of a run's summary are called on the page."""

MOST_ROWS = 1_000
"""Of a table: a page of more is no report. What was asked for should be one more."""

Row = Mapping[str, object]


class Report:
    """Sections in their order; `write` makes report.html and report.json in a directory."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []
        self.values: dict[str, object] = {}

    def summary(self, values: Mapping[str, object]) -> None:
        """Names and values at the top; a value may itself be numbers by what they count."""
        self.values["summary"] = dict(values)
        lines = "".join(
            f"<dt>{_text(_WORDS.get(name, name))}</dt><dd>{_told(value)}</dd>"
            for name, value in values.items()
        )
        self._parts.append(f"<dl>{lines}</dl>")

    def plot(self, title: str, bars: Sequence[tuple[str, float]]) -> None:
        """A bar for each name, the longest for the largest value."""
        if not bars:
            self._parts.append(f"<h2>{_text(title)}</h2><p>None.</p>")
            return
        most = max(value for _, value in bars) or 1
        longest = max(len(name) for name, _ in bars)
        labels = min(_LABELS, 16 + _LETTER * longest)
        lines = []
        for index, (name, value) in enumerate(bars):
            top = index * _BAR
            width = value / most * (_WIDTH - labels - 90)
            lines.append(
                f'<text x="{labels - 8}" y="{top + 15}" text-anchor="end">{_text(name)}</text>'
                f'<rect class="bar" x="{labels}" y="{top + 3}" width="{width:.1f}"'
                f' height="{_BAR - 6}"/>'
                f'<text x="{labels + width + 6:.1f}" y="{top + 15}">{value:,.6g}</text>'
            )
        box = f'viewBox="0 0 {_WIDTH} {len(bars) * _BAR}"'
        told = "; ".join(f"{name}: {value:,.6g}" for name, value in bars)
        picture = (
            f'<svg class="chart bars" {box} role="img" aria-label="{_text(told)}">'
            f"{''.join(lines)}</svg>"
        )
        self._parts.append(f"<h2>{_text(title)}</h2>{_scrolling(title, picture)}")

    def table(self, name: str, title: str, rows: Sequence[Row], most: int = MOST_ROWS) -> None:
        """A table; its rows are `name` in the JSON. It has the first `most`, and says so."""
        more = len(rows) > most
        rows = rows[:most]
        self.values[name] = [dict(row) for row in rows]
        self._parts.append(f"<h2>{_text(title)}</h2>")
        if more:
            note = f"The first {most:,} are shown; the tables that the job has written have all."
            self._parts.append(f'<p class="quiet">{note}</p>')
        if not rows:
            self._parts.append("<p>None.</p>")
            return
        head = "".join(
            f'<th scope="col"{_kind(value)}>{_text(column.replace("_", " "))}</th>'
            for column, value in rows[0].items()
        )
        body = "".join("<tr>" + "".join(map(_cell, row.values())) + "</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        self._parts.append(_scrolling(title, table))

    def write(self, directory: Path) -> None:
        """Write both files; the directory is made."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "report.html").write_text(self._page(), "utf-8")
        told = json.dumps(self.values, indent=2, default=str, ensure_ascii=False)
        (directory / "report.json").write_text(told + "\n", "utf-8")

    def _page(self) -> str:
        title = _text(self._title)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{title} - rpcqm</title><style>{style()}</style></head><body>"
            f'<a class="skip" href="#content">Skip to the content</a>'
            '<header class="top"><p class="brand"><strong>rpcqm</strong></p></header>'
            f'<main id="content" tabindex="-1"><h1>{title}</h1>{"".join(self._parts)}</main>'
            f"<script>{_SCRIPT}</script></body></html>\n"
        )


def _scrolling(title: str, what: str) -> str:
    """What may be wider than the screen: it scrolls, also by the keyboard."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(title)}">{what}</div>'
    )


def _text(value: object) -> str:
    return html.escape("" if value is None else visible(str(value)))


def _told(value: object) -> str:
    """A value of the summary, in words."""
    if isinstance(value, Mapping):
        counted = (f"{_number(number)} {_text(what)}" for what, number in value.items())
        return ", ".join(counted) or "nothing"
    return _number(value)


def _number(value: object) -> str:
    """A number as people write it; other values as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _text(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _kind(value: object) -> str:
    """The class of a cell, and of the head above it."""
    return ' class="number"' if _is_number(value) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if _is_number(value):
        return f'<td{_kind(value)} data-value="{value!r}">{_number(value)}</td>'
    return f"<td>{_words(value)}</td>"


def _words(value: object) -> str:
    """A value of a cell: what has parts is told by them."""
    if isinstance(value, Mapping):
        return _told(value) if value else ""
    if isinstance(value, list | tuple):
        return _text(", ".join(map(str, value)))
    return _text(value)
