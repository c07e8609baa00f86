"""What is read of frames, and what is not, as the documentation tells it."""

from collections.abc import Iterator, Mapping

from rpcqm.capture.frames import numbers
from rpcqm.capture.frames.steps import LAYERS
from rpcqm.capture.frames.walking import MOST_LAYERS

_NOT_READ: tuple[Mapping[int, str], ...] = (
    numbers.UNREAD_LINKS,
    numbers.UNREAD_ETHERTYPES,
    numbers.UNREAD_PROTOCOLS,
    numbers.UNREAD_PORTS,
    numbers.UNREAD_PPP,
)


def frames_table() -> str:
    """A row for each layer that is read, and one for what is counted and told instead."""
    rows = "".join(f"| {name} | {about} |\n" for name, about in _rows())
    return f"| Layer | What of it |\n|---|---|\n{rows}"


def _rows() -> Iterator[tuple[str, str]]:
    for layer in LAYERS.values():
        if layer.about:
            yield layer.name, layer.about
    yield "in one another", f"in any order, {MOST_LAYERS} layers at most"
    kinds = dict.fromkeys(name for names in _NOT_READ for name in names.values())
    yield "not read, but told", ", ".join(kinds) + ", and all that has another number"
