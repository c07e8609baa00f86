"""XPath and JSONPath of triggers, compiled: to be asked of bodies, and to check a new rule."""

from typing import TYPE_CHECKING, Any

from rpcqm.base.errors import DecodeError
from rpcqm.codec.names.written import format_name
from rpcqm.codec.trigger_rule import TriggerRule

if TYPE_CHECKING:
    from lxml import etree

FEEDS_ITSELF = "`send_to` is the queue of the rule, which would never come to an end"
NO_JSON_PATH = (
    "JSONPath needs python-jsonpath, which is not installed: pip install 'rpcqm[triggers]'"
)


class WrongExpressionError(Exception):
    """An expression that cannot be used; the text is a clause."""


class NoJsonPathError(WrongExpressionError):
    """The library for JSONPath is not installed here."""


def xpath(expression: str) -> "etree.XPath":
    """An XPath to be asked; raises WrongExpressionError."""
    from lxml import etree  # only now: most rules have no XPath

    try:
        return etree.XPath(expression, regexp=False)
    except (etree.XPathError, ValueError) as error:
        raise WrongExpressionError(f"{expression!r} is no XPath: {error}") from error


def json_path(expression: str) -> Any:
    """A JSONPath to be asked; raises WrongExpressionError."""
    try:
        import jsonpath  # only now: it is an extra that few rules need
    except ImportError:
        raise NoJsonPathError(NO_JSON_PATH) from None
    try:
        return jsonpath.compile(expression)
    except (jsonpath.JSONPathError, RecursionError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise WrongExpressionError(f"{expression!r} is no JSONPath: {first}") from error


def check_usable(rule: TriggerRule) -> None:
    """Raise DecodeError for a wrong expression, or for a rule that feeds itself (G727).

    A rule is checked so when it is made or changed. Those that are kept already are not, so that a
    queue manager always starts, and those that rest are not, so that an old one can be laid to
    rest.
    """
    if not rule.enabled:
        return
    if rule.send_to and format_name(rule.send_to) == format_name(rule.queue):
        raise DecodeError(FEEDS_ITSELF)
    try:
        if rule.xpath:
            xpath(rule.xpath)
        if rule.json_path:
            json_path(rule.json_path)
    except NoJsonPathError:
        return  # the service may have what is not installed here, and says it if not
    except WrongExpressionError as error:
        raise DecodeError(str(error)) from error
