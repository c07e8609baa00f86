"""URLs that stand for others ([MC-MQSRM] 3.1.1.1.9, 3.1.1.1.10)."""

from collections.abc import Iterable

from rpcqm.base.text import folded
from rpcqm.srmp.settings import Redirection

WILDCARD = "*"


def find_redirection(redirections: Iterable[Redirection], url: str) -> str | None:
    """The URL that the first matching rule redirects to, or None (G211).

    A `*` at the end of the other URL stands for the part that the `*` of the rule has matched.
    """
    for rule in redirections:
        rest = rest_behind(rule.from_url, url)
        if rest is not None:
            return rule.to_url.replace(WILDCARD, rest, 1)
    return None


def matches_any(patterns: Iterable[str], url: str) -> bool:
    """Whether a URL equals a pattern, or begins as a pattern with a `*` at its end does."""
    return any(rest_behind(pattern, url) is not None for pattern in patterns)


def rest_behind(pattern: str, url: str) -> str | None:
    """The part of a URL that the `*` of a pattern matches, "" without a `*`; None without a match.

    Letters are compared without regard to case.
    """
    if not pattern.endswith(WILDCARD):
        return "" if folded(pattern) == folded(url) else None
    start = len(pattern) - len(WILDCARD)
    return url[start:] if folded(url[:start]) == folded(pattern[:start]) else None
