"""A request as the functions of the interface get it, and their answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rpcqm.api.problems import Refusal
from rpcqm.base.identity import Identity
from rpcqm.base.settling import settled
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import HERE, format_name, format_names
from rpcqm.http.exchange import HttpStream
from rpcqm.operations.operations import Operations

__all__ = ["Asked", "Reply", "settled"]


@dataclass(slots=True)  # not frozen, which takes longer to make; neither is changed
class Asked:
    """A request whose caller has logged on, and whose parameters are those of its route.

    `longest_wait` is in seconds. `parameters` and `content` are the models of the route.
    """

    operations: Operations
    identity: Identity
    longest_wait: int
    path: Mapping[str, str]
    parameters: Any
    content: Any
    body: bytes
    again: Callable[[], Identity]
    """The caller's identity as the same password or token gives it later; raises Refusal."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def still(self) -> bool:
        """Whether the caller may still log on as the same account: tokens and accounts can end."""
        try:
            return self.again().sid == self.identity.sid
        except Refusal:
            return False

    @property
    def queue_text(self) -> str:
        """The name of the queue: that of the path, unless a parameter names one."""
        named: str | None = getattr(self.parameters, "queue", None)
        return self.path["name"] if named is None else named

    @property
    def queue(self) -> FormatName:
        """The queue of the request; raises MQError for a malformed name."""
        return format_name(self.queue_text, HERE)

    @property
    def destinations(self) -> tuple[FormatName, ...]:
        """The queues to send to: a format name may list several."""
        return format_names(self.queue_text, HERE)


@dataclass(slots=True)
class Reply:
    """An answer: a value for JSON, or octets of some type, or a stream of them."""

    status: int = 200
    value: object = None
    octets: bytes | None = None
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    stream: HttpStream | None = None
