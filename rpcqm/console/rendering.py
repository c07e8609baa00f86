"""Templates to HTML: everything is escaped, and no character moves or hides another one."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rpcqm.base.text import visible, within_calendar
from rpcqm.console.forms import link
from rpcqm.console.static_files import asset_path
from rpcqm.console.texts import text

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_AGES = ((86_400, "age.days"), (3_600, "age.hours"), (60, "age.minutes"), (1, "age.seconds"))


@cache
def environment() -> Environment:
    """What renders all pages."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_safe,
    )
    made.globals.update(
        t=text, link=link, style=asset_path("console.css"), script=asset_path("console.js")
    )
    made.filters.update(
        octets=octets,
        age=age,
        moment=moment,
        clock=clock,
        amount=amount,
        instant=instant,
        count=count,
        exactly=exactly,
    )
    return made


def render(template: str, values: dict[str, object]) -> bytes:
    """A page in UTF-8."""
    return environment().get_template(template).render(values).encode("utf-8", "replace")


def _safe(value: object) -> object:
    """What a template shows: texts of strangers with escapes for what is not printable."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value, keep="\n\t")
    return value


def exactly(value: object) -> Markup:
    """A value that a form sends back as it is, where nobody reads it."""
    escaped = Markup.escape(str(value))
    if escaped.isprintable():
        return escaped
    return Markup("".join(c if c.isprintable() else f"&#{ord(c)};" for c in escaped))


def count(number: int) -> str:
    """A number with commas."""
    return f"{number:,}"


def octets(size: int) -> str:
    """A size in the unit that people would take."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def age(milliseconds: float) -> str:
    """How long something took or is ago, in its two largest units at most."""
    seconds = int(max(0, milliseconds) // 1000)
    parts = []
    for length, name in _AGES:
        number, seconds = divmod(seconds, length)
        if number:
            parts.append(text(name, number=number))
    return " ".join(parts[:2]) or text("age.seconds", number=0)


def moment(milliseconds: float) -> str:
    """A time of the day in UTC, for people."""
    if not milliseconds:
        return text("never")
    return _utc(milliseconds).strftime("%Y-%m-%d %H:%M:%S UTC")


def _utc(milliseconds: float) -> datetime:
    """A moment, whatever number somebody has told."""
    return datetime.fromtimestamp(within_calendar(milliseconds / 1000), UTC)


def clock(milliseconds: float) -> str:
    """A time of this day in UTC, for people."""
    return _utc(milliseconds).strftime("%H:%M UTC")


def amount(number: float) -> str:
    """A number of any kind, with a tenth where it is none that is whole."""
    return f"{number:,.1f}".removesuffix(".0")


def instant(milliseconds: int) -> str:
    """A time in UTC to the millisecond, for what follows each other quickly."""
    told = _utc(milliseconds).isoformat(" ", "milliseconds")
    return told.replace("+00:00", " UTC")
