"""Messages as JSON, told one after the other until an answer has enough of them (G396)."""

from collections.abc import Callable, Iterable, Mapping

from rpcqm.api.reading import write_json
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.operations.messages import Message

VALUE_OCTETS = 32
"""Bytes of a page that each value of a body counts as beside what is told of it.

They stand for the time that a value takes.

Bound `program.value_octets` [bytes]: the others are on the next page.
"""

Tell = Callable[[Message, DecodeBudget], dict[str, object]]
"""What is told of a message, of whose body no more is made than a budget allows."""


class ToldMessages:
    """What was told so far, for one answer."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._parts: list[bytes] = []

    def measure(self, message: Message) -> int:
        """Write another message; returns how much of an answer it takes."""
        budget = DecodeBudget(message.attributes.body_size)
        part = write_json(self._tell(message, budget))
        self._parts.append(part)
        return len(part) + VALUE_OCTETS * budget.spent

    def answer(self, following: object | None, **more: object) -> bytes:
        """All of them, after which one the next ones come, and what else there is to tell."""
        told = "null" if following is None else f'"{following}"'
        rest = b",%b" % write_json(more)[1:] if more else b"}"
        return b'{"messages":[%b],"next":%b%b' % (b",".join(self._parts), told.encode(), rest)

    def add(self, more: Iterable[Mapping[str, object]]) -> None:
        """Tell something more of each, which was not known when it was told."""
        pairs = zip(self._parts, more, strict=True)
        self._parts = [part[:-1] + b"," + write_json(each)[1:] for part, each in pairs]
