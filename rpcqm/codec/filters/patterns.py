"""Patterns of labels, and regular expressions by a library with linear time.

google-re2 is loaded for the first expression: it is an extra that may be missing.
"""

import re
from functools import lru_cache
from typing import Protocol, cast

from rpcqm.base.errors import HResult, MQError

_MEMORY = 256 * 1024
"""Octets that an expression and its automaton may take, which also bounds its states."""
_PARTS = re.compile(r"\*+|\?|\[(?P<no>!?)(?P<set>\]?[^\]]*)\]|.", re.DOTALL)


class Expression(Protocol):
    """A compiled regular expression."""

    def search(self, text: bytes) -> object | None: ...


@lru_cache(maxsize=64)
def pattern_of_glob(text: str, ignore_case: bool = False) -> re.Pattern[str]:
    """Compile a pattern with `*`, `?` and `[…]`; raises ValueError with a clause.

    Each star takes time linear in the text: the part between two of them is sought once, without
    going back.
    """
    first, *others = _pieces(text)
    middle = "".join(f"(?>.*?{each})" for each in others[:-1])
    whole = first + (middle + f".*{others[-1]}" if others else "")
    try:
        return re.compile(whole, re.DOTALL | (re.IGNORECASE if ignore_case else 0))
    except re.error:
        raise ValueError("a set in brackets is wrong: write it like [a-z] or [!0-9]") from None


def _pieces(text: str) -> list[str]:
    """The parts between the stars, as regular expressions."""
    pieces = [""]
    for part in _PARTS.finditer(text):
        found = part[0]
        if found[0] == "*":
            pieces.append("")
        elif found == "?":
            pieces[-1] += "."
        elif part["set"] is not None:
            pieces[-1] += f"[{'^' if part['no'] else ''}{_characters(part['set'])}]"
        elif found == "[":
            raise ValueError("there is a [ without its ]; write [[] for the character")
        else:
            pieces[-1] += re.escape(found)
    return pieces


def _characters(text: str) -> str:
    if not text:
        raise ValueError("there is a [ without its ]; write [[] for the character")
    return re.sub(r"([\\\]\[^&~|])", r"\\\1", text).replace("--", r"-\-")


def compiled_expression(text: str, ignore_case: bool = False) -> Expression:
    """Compile a regular expression; raises MQError(MQ_ERROR_INVALID_PARAMETER) with a sentence."""
    try:
        import re2
    except ImportError:
        raise _wrong(
            "regular expressions need google-re2, which is not installed: "
            "`pip install 'rpcqm[search]'`"
        ) from None
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.never_capture = True
    try:
        return cast("Expression", re2.compile(text, options))
    except re2.error as error:
        raise _wrong(f"regex: {_because(error)}") from None


def _because(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    return f"that is no regular expression of RE2: {text}"


def _wrong(sentence: str) -> MQError:
    return MQError(HResult.MQ_ERROR_INVALID_PARAMETER, sentence)
