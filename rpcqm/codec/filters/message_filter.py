"""A filter of messages: what somebody looks for, or gives an order for."""

from dataclasses import dataclass, fields

from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import Sid


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Conditions that a message meets all of; None is no condition.

    `label` is a pattern with `*`, `?` and `[…]`, `body` a text that the body says, `regex` a
    regular expression of RE2 for the label or the body. `since` and `until` are of the arrival, in
    milliseconds since 1970, `size_min` and `size_max` octets of the body; each bound is met by
    what is equal to it. `ignore_case` counts for `label`, `body` and `regex`. `written` in
    `rpcqm.codec.filters.written` makes one of texts, `matching` compares messages with one.
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
        """Whether what a body says decides, and not only what stands before it."""
        return self.body is not None or self.regex is not None
