"""Forms and queries as browsers send them: application/x-www-form-urlencoded, within bounds."""

from urllib.parse import quote, unquote_to_bytes

from rpcqm.base.errors import HResult, MQError
from rpcqm.console.asked import Fields
from rpcqm.console.texts import text

FORM_BYTES = 1 << 20
"""A form of somebody who is logged on.

A message that is written by hand is shorter.

Bound `console.form_bytes` [bytes]: the form is refused.
"""
LOGON_BYTES = 1 << 13
"""A form of somebody who is not logged on.

Bound `console.logon_bytes` [bytes]: the form is refused.
"""
MOST_FIELDS = 1_100
"""Fields of a form, or of a query.

A page of messages has a box for each, and some besides.

Bound `console.fields` [fields]: the form is refused.
"""
TYPE = "application/x-www-form-urlencoded"


def read_fields(octets: bytes) -> Fields:
    """The fields of a form or a query; raises MQError for other octets."""
    pairs = [pair for pair in octets.split(b"&") if pair]
    if len(pairs) > MOST_FIELDS:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("wrong.fields"))
    return Fields(tuple(_field(pair) for pair in pairs))


def _field(pair: bytes) -> tuple[str, str]:
    name, _, value = pair.partition(b"=")
    return _text(name), _text(value)


def _text(octets: bytes) -> str:
    try:
        return unquote_to_bytes(octets.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("wrong.form")) from None


def link(path: str, **fields: object) -> str:
    """A path with a query; fields that are None or empty are left out."""
    given = [(name, str(value)) for name, value in fields.items() if value not in (None, "")]
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in given)
    return f"{path}?{query}" if query else path
