"""The page that says what will happen, before it is done: its button sends the form."""

from collections.abc import Mapping, Sequence

from rpcqm.console.asked import Shown
from rpcqm.console.fields import Field
from rpcqm.console.texts import text


def sure(
    question: str,
    button: str,
    back: str,
    hidden: Mapping[str, object],
    lines: Sequence[str] = (),
    fields: Sequence[Field] = (),
    notes: Sequence[str] = (),
) -> Shown:
    """A question, the words of the button, where the way back goes, and what the form sends.

    A name in `hidden` that has a list is sent once for each element. `fields` are still to be
    filled in.
    """
    return Shown(
        {
            "question": question,
            "lines": lines,
            "notes": notes,
            "words": text(button),
            "back": back,
            "given": [(name, each) for name, value in hidden.items() for each in _values(value)],
            "fields": fields,
        },
        "ask.html",
    )


def _values(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
