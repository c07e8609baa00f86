"""A context in which output is collected instead of sent at once."""

from collections.abc import Callable


class Gathering:
    """Calls `ended` when the outermost `with` block over it ends, also after a failure.

    It may be entered again and again, also within itself; `depth` is 0 outside.
    """

    __slots__ = ("_ended", "depth")

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if not self.depth:
            self._ended()
