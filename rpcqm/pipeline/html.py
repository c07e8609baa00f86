"""Reports: one HTML page with plots and tables that can be sorted, and the same as JSON."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .25rem .6rem; text-align: left }
th { cursor: pointer; white-space: nowrap } td.n { text-align: right }
svg { width: 100%; max-width: 60rem }
rect { fill: #3b76b8 } text { font-size: 12px; fill: currentColor }
@media (prefers-color-scheme: dark) { body { background: #16181b; color: #e4e6e8 } }
"""
_SCRIPT = """
document.querySelectorAll("th").forEach(th => th.onclick = () => {
  const body = th.closest("table").tBodies[0], column = th.cellIndex;
  const up = th.dataset.up = th.dataset.up === "1" ? "0" : "1";
  const key = row => row.cells[column].textContent;
  [...body.rows].sort((a, b) => {
    const x = key(a), y = key(b), n = x - y;
    return (up === "1" ? 1 : -1) * (isNaN(n) ? x.localeCompare(y) : n);
  }).forEach(row => body.append(row));
});
"""
_BAR, _LABELS, _WIDTH = 22, 300, 900

Row = Mapping[str, object]


class Report:
    """Sections in their order; `write` makes report.html and report.json in a directory."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []
        self.values: dict[str, object] = {}

    def summary(self, values: Mapping[str, object]) -> None:
        """Names and values at the top."""
        self.values["summary"] = dict(values)
        cells = "".join(
            f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>"
            for name, value in values.items()
        )
        self._parts.append(f"<table>{cells}</table>")

    def plot(self, title: str, bars: Sequence[tuple[str, float]]) -> None:
        """A bar for each name, the longest for the largest value."""
        most = max((value for _, value in bars), default=0) or 1
        lines = []
        for index, (name, value) in enumerate(bars):
            top = index * _BAR
            width = value / most * (_WIDTH - _LABELS - 90)
            lines.append(
                f'<text x="{_LABELS - 8}" y="{top + 15}" text-anchor="end">{_text(name)}</text>'
                f'<rect x="{_LABELS}" y="{top + 3}" width="{width:.1f}" height="{_BAR - 6}"/>'
                f'<text x="{_LABELS + width + 6:.1f}" y="{top + 15}">{value:g}</text>'
            )
        box = f'viewBox="0 0 {_WIDTH} {max(1, len(bars)) * _BAR}"'
        self._parts.append(f'<h2>{_text(title)}</h2><svg {box} role="img">{"".join(lines)}</svg>')

    def table(self, name: str, title: str, rows: Sequence[Row]) -> None:
        """A table; its rows are `name` in the JSON."""
        self.values[name] = [dict(row) for row in rows]
        self._parts.append(f"<h2>{_text(title)}</h2>")
        if not rows:
            self._parts.append("<p>None.</p>")
            return
        head = "".join(f"<th>{_text(column)}</th>" for column in rows[0])
        body = "".join("<tr>" + "".join(map(_cell, row.values())) + "</tr>" for row in rows)
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_text(self._title)}'
            f"</title><style>{_STYLE}</style><h1>{_text(self._title)}</h1>"
            + "".join(self._parts)
            + f"<script>{_SCRIPT}</script></html>\n"
        )
        (directory / "report.html").write_text(page, "utf-8")
        told = json.dumps(self.values, indent=2, default=str, ensure_ascii=False)
        (directory / "report.json").write_text(told + "\n", "utf-8")


def _text(value: object) -> str:
    return html.escape("" if value is None else str(value))


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            f'<td class="n">{value:g}</td>'
            if isinstance(value, float)
            else f"<td class=n>{value}</td>"
        )
    return f"<td>{_text(value)}</td>"
