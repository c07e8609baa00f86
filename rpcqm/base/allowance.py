"""A bound on how much of one thing a client may have."""

from rpcqm.base.errors import HResult, MQError


class Allowance:
    """Counts a client's items of one kind; `what` names them in a refusal."""

    __slots__ = ("_limit", "_what", "used")

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self.used = 0

    def take(self, count: int = 1) -> None:
        """Count some more; MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) when that is too much."""
        if self.used + count > self._limit:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, f"too many {self._what}")
        self.used += count

    def give_back(self, count: int = 1) -> None:
        """Count some less."""
        self.used -= count
