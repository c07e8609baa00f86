"""The connection of a line that leads to nobody."""


class SilentWire:
    """Takes what a queue manager sends."""

    def __init__(self) -> None:
        self.sent = 0
        self.closed = False

    def write(self, data: bytes) -> None:
        self.sent += len(data)

    def close(self) -> None:
        self.closed = True

    def pause(self, paused: bool) -> None:
        """A stranger has no patience."""
