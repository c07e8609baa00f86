"""One captured call, and the conversation that it belongs to."""

import functools
from dataclasses import dataclass, field
from typing import Any

from rpcqm.base.errors import DecodeError, FaultStatus
from rpcqm.base.hresult import status_name
from rpcqm.capture.conversation.interfaces import Context
from rpcqm.codec.interface import Operation

NCACN_IP_TCP = "ncacn_ip_tcp"
MSMQ_BINARY = "MS-MQQB"
MC_MQSRM = "MC-MQSRM"

_MILLION = 1_000_000


FURTHER_STATUSES = {0x16C9A0D6: "ept_s_not_registered"}
"""Statuses of the endpoint mapper alone ([C706] appendix E)."""


@functools.cache
def name_of_status(status: int) -> str:
    """The name of a fault's status or of a return value."""
    if status in FURTHER_STATUSES:
        return FURTHER_STATUSES[status]
    known = FaultStatus._value2member_map_.get(status)
    return known.name if isinstance(known, FaultStatus) else status_name(status)


@functools.cache
def returns_status(operation: Operation) -> bool:
    """Whether a method returns an HRESULT."""
    return getattr(operation.declaration.result, "name", "") == "long"


@dataclass(slots=True, eq=False)
class Conversation:
    """What the calls of one connection share.

    `level` is the level of security that was negotiated, `account` who the client says it is, and
    `without_calls` why there are no calls, if there are none.
    """

    number: int
    client: str
    server: str
    protocol: str
    started: int
    level: int = field(default=1, init=False)
    account: str = field(default="", init=False)
    group: int = field(default=0, init=False)
    without_calls: str = field(default="no call was made", init=False)


@dataclass(slots=True, eq=False, repr=False)
class CapturedCall:
    """A request with what answered it.

    `request` and `response` are stub data in clear, None where they were not captured or are
    sealed; `request_size` and `response_size` are what was on the wire. Times are nanoseconds
    since 1970, `ended` is 0 without an answer. `offset` is the record of the request's first
    fragment. `note` says what is odd.
    """

    conversation: Conversation
    call_id: int
    context: Context
    opnum: int
    time: int
    offset: int
    ended: int = field(default=0, init=False)
    request_size: int = field(default=0, init=False)
    response_size: int = field(default=0, init=False)
    response_offset: int = field(default=0, init=False)
    request: bytes | None = field(default=None, init=False)
    response: bytes | None = field(default=None, init=False)
    fault: int | None = field(default=None, init=False)
    object_uuid: bytes | None = field(default=None, init=False)
    big_endian: bool = field(default=False, init=False)
    sealed: bool = field(default=False, init=False)
    orphaned: bool = field(default=False, init=False)
    cancelled: int = field(default=0, init=False)
    note: str = field(default="", init=False)
    _decoded_request: Any = field(default=None, init=False)
    _decoded_response: Any = field(default=None, init=False)

    protocol = NCACN_IP_TCP

    @property
    def operation(self) -> Operation | None:
        return self.context.operation(self.opnum)

    @property
    def interface_name(self) -> str:
        return self.context.name

    @property
    def name(self) -> str:
        """The method's name, or `opnum N`."""
        operation = self.context.operation(self.opnum)
        return operation.name if operation else f"opnum {self.opnum}"

    @property
    def duration_ms(self) -> float | None:
        """Milliseconds from the request to the end of the answer."""
        return (self.ended - self.time) / _MILLION if self.ended else None

    def decoded_request(self) -> Any:
        """The request's parameters; None without stub data in clear or a known method.

        What cannot be decoded is None too, and said in `note`.
        """
        if self._decoded_request is None and self.request is not None:
            self._decoded_request = self._decode(self.request, "request")
        return self._decoded_request

    def decoded_response(self) -> Any:
        """The response's parameters; as `decoded_request`."""
        if self._decoded_response is None and self.response is not None:
            self._decoded_response = self._decode(self.response, "response")
        return self._decoded_response

    def _decode(self, stub: bytes, which: str) -> Any:
        operation, syntax = self.context.operation(self.opnum), self.context.syntax
        if operation is None or syntax is None:
            return None
        codec = getattr(operation.codec(syntax, self.big_endian), which)
        try:
            return codec.decode(stub)
        except DecodeError as error:
            self.note = f"the {which} is not one of {operation.name}: {error}"
            return None

    @property
    def status(self) -> int | None:
        """A fault's status, or what the method returned; None without an answer in clear."""
        if self.fault is not None:
            return self.fault
        response = self.decoded_response()
        if response is None:
            return None
        operation = self.operation
        if operation is not None and returns_status(operation):
            return int(response.result) & 0xFFFFFFFF
        return int(getattr(response, "status", 0)) & 0xFFFFFFFF

    @property
    def status_name(self) -> str | None:
        status = self.status
        if status is None:
            return None
        if self.fault is None and self.context.name in ("ept", "mgmt"):
            return name_of_status(status) if status else "rpc_s_ok"
        return name_of_status(status)
