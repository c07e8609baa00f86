"""The page that says what will happen, before it is done: its button sends the form."""

from collections.abc import Mapping, Sequence

from rpcqm.console.asked import Shown
from rpcqm.console.fields import Field
from rpcqm.console.texts import text


def sure(
    question: str,
    button: str,
    back: str,
    hidden: Mapping[str, str],
    lines: Sequence[str] = (),
    fields: Sequence[Field] = (),
) -> Shown:
    """A question, the words of the button, where the way back goes, and what the form sends.

    `fields` are still to be filled in.
    """
    return Shown(
        {
            "question": question,
            "lines": lines,
            "words": text(button),
            "back": back,
            "given": [*hidden.items()],
            "fields": fields,
        },
        "ask.html",
    )
