"""The quantities that a quota limits: messages and bytes of a queue."""


class QueueUsage:
    """Messages and bytes that were admitted and are not yet durably removed (G56).

    A message counts from the time that it is staged or waits for its commit until its removal is on
    the disk.
    """

    __slots__ = ("bytes", "count")

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0

    def charge(self, size: int) -> None:
        self.count += 1
        self.bytes += size

    def release(self, size: int) -> None:
        self.count -= 1
        self.bytes -= size

    def charge_many(self, count: int, size: int) -> None:
        """Charge `count` messages of `size` bytes together; negative numbers release them."""
        self.count += count
        self.bytes += size
