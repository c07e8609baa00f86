"""A filter of messages: the conditions of a search, or of an order."""

from dataclasses import dataclass, fields

from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import Sid


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Conditions that a message must all meet; None is no condition.

    `label` is a pattern with `*`, `?` and `[…]`, `body` a text in the body, `regex` a regular
    expression of RE2 for the label or the body. `since` and `until` bound the arrival, in
    milliseconds since 1970, `size_min` and `size_max` the octets of the body; bounds are inclusive.
    `ignore_case` applies to `label`, `body` and `regex`. `written` in `rpcqm.codec.filters.written`
    makes one of texts, `matching` compares messages with one.
    """

    label: str | None = None
    body: str | None = None
    regex: str | None = None
    correlation_id: MessageIdentifier | None = None
    sender: Sid | None = None
    since: int | None = None
    until: int | None = None
    classes: frozenset[int] | None = None
    size_min: int | None = None
    size_max: int | None = None
    priorities: frozenset[int] | None = None
    transactional: bool | None = None
    ignore_case: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether every message meets it."""
        return all(getattr(self, each.name) is None for each in fields(self)[:-1])

    @property
    def looks_at_bodies(self) -> bool:
        """Whether the contents of bodies matter."""
        return self.body is not None or self.regex is not None
