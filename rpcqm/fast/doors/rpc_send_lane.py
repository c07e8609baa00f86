"""Consecutive sends of one connection, with the values that do not change between them.

The recogniser decides which sends templates carry out. After the first of them the next ones of the
connection come to its lane: values that follow from the connection and its security are not
computed again, those that may have changed are (docs/request-templates.md). A lane takes no send
that the recogniser would refuse, and leaves it all others.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.queue import Queue
from rpcqm.base.identity import Identity
from rpcqm.base.metrics import stopwatch
from rpcqm.codec.names.format_name import FormatName
from rpcqm.fast.doors.rpc_recognition import Recognition
from rpcqm.fast.doors.rpc_sent_values import (
    BODY,
    PRIORITY,
    TIME_TO_BE_RECEIVED,
    SendTemplate,
    SentValues,
    values_of,
)
from rpcqm.fast.formats.stub_shapes import StubShape
from rpcqm.fast.learned import Near
from rpcqm.fast.requests import Composed, composed_each
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.interfaces._sent_buffer import time_to_reach_queue
from rpcqm.qm.timers import expiry_at
from rpcqm.rpc.call import ABANDONED, Call, CallingAssociation
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.interface_registry import CarefulPath
from rpcqm.rpc.presentation import PresentationContext
from rpcqm.rpc.security.context import SecurityContext
from rpcqm.rpc.security.verification import may_be_verified

OF_LANE = 64
"""Open queues that a connection sends to by templates without looking for them.

Bound `rpc.open_queues_of_a_lane` [open queues]: all of them are forgotten, and found again.
"""
OF_HANDLE = 8
"""Templates that a connection keeps with a queue that it has open.

Bound `rpc.request_templates_of_a_handle` [templates]: they are looked for among all.
"""
FEWEST = 4
"""Columns of fewer messages cost more than single messages."""

_GONE: SentValues = (0, 0, 0, 0, b"", b"", b"")

Names = tuple[object, ...]
"""The names of the administration queue and of the response queue, as in a request."""


class OpenForSending:
    """The one queue that is open behind a handle, with the templates of its sends.

    `template` is that of the last send, whose shape and names are kept beside it. A kind of
    requests without a template has None in `templates`.
    """

    __slots__ = ("_names", "_shape", "descriptor", "queue", "template", "templates")

    def __init__(self, descriptor: OpenQueueDescriptor, queue: Queue) -> None:
        self.descriptor, self.queue = descriptor, queue
        self.templates: Near[tuple[StubShape, Names], SendTemplate] = Near(OF_HANDLE)
        self._shape: StubShape | None = None
        self._names: Names = ()
        self.template: SendTemplate | None = None

    def find(self, shape: StubShape, names: Names) -> SendTemplate | None:
        """The template for sends of a shape with these queue names, or None."""
        if shape is not self._shape or names != self._names:
            self.template = self.templates.find((shape, names))
            self._shape, self._names = shape, names
        return self.template

    def keep(self, shape: StubShape, names: Names, template: SendTemplate | None) -> None:
        """Add a template for `find`."""
        self.template = self.templates.keep((shape, names), template)
        self._shape, self._names = shape, names


class SendLane:
    """The common values of sends over one connection and security (`rpc.call.ConnectionShortcut`).

    For each open handle it keeps the queue behind it.
    """

    __slots__ = (
        "_admission",
        "_find",
        "_handles",
        "_level",
        "_open",
        "_turn",
        "_under",
        "context",
        "durations",
        "opnum",
        "path",
        "security",
    )

    def __init__(
        self, call: Call, path: CarefulPath, recognition: Recognition, handles: ClientHandles
    ) -> None:
        self._handles, self._admission = handles, handles.admission
        self._under = self._admission.security
        self.context, self.security, self.opnum = call.context, call.security, call.opnum
        self._level = call.security.assured_level
        self.path, self._turn = path, recognition.turn
        self.durations = call.durations
        self._find = recognition.shapes.find
        self._open: dict[bytes, tuple[ContextHandle, OpenForSending]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def fits(self, context: PresentationContext, security: SecurityContext) -> bool:
        """Whether a call has the lane's context and security, under unchanged settings."""
        return (
            security is self.security
            and context is self.context
            and self._admission.security is self._under
        )

    def take(
        self,
        association: CallingAssociation,
        call_id: int,
        context: PresentationContext,
        security: SecurityContext,
        stub: bytes,
    ) -> bool:
        """Put a message into the turn, if nothing has changed since the last one."""
        if not self._may_take(association, context, security, stub):
            return False
        found = self._find(stub)
        if found is None:
            return False
        shape, holes = found
        known = self._known(holes[0])
        if known is None:
            return False
        handle, opened = known
        template = opened.find(shape, holes[1:3])
        descriptor = opened.descriptor
        if (
            template is None
            or descriptor.queue_reference is not opened.queue
            or descriptor.application_deadletter_queue
            or not self._handles.serves(association.endpoint.transport)
        ):
            return False
        values = values_of(holes)
        if values is None or not handle.join(self._turn.drain):
            return False
        self.path.calls += 1
        self.put(association, call_id, stub, handle, opened.queue, template, values)
        return True

    def _may_take(
        self,
        association: CallingAssociation,
        context: PresentationContext,
        security: SecurityContext,
        stub: bytes,
    ) -> bool:
        """Whether this lane may examine a request, and one more call may wait.

        Each connection may have one call that waits. After a call without a template, the
        recogniser comes first.
        """
        path, pending = self.path, association.pending
        return (
            self.fits(context, security)
            and self._turn.is_on
            and not association.untaken
            and (not pending or (pending < path.most_of_one and path.pending < path.most_pending))
            and not (security.auth_type and may_be_verified(stub))
        )

    def _known(self, wire: bytes) -> tuple[ContextHandle, OpenForSending] | None:
        """A handle that is still open, at a sufficient level; None for the recogniser."""
        known = self._open.get(wire)
        if known is None:
            return None
        handle = known[0]
        if handle.closed:
            del self._open[wire]
            return None
        return None if handle.closing or handle.minimum_level > self._level else known

    def opened(self, wire: bytes) -> OpenForSending | None:
        """The queue behind a handle; None if it was not looked up."""
        known = self._open.get(wire)
        return None if known is None else known[1]

    def remember(self, wire: bytes, handle: ContextHandle, opened: OpenForSending) -> None:
        """Take further sends with a handle that has been looked up for this lane."""
        if len(self._open) >= OF_LANE:
            self._open.clear()
        self._open[wire] = handle, opened

    def put(
        self,
        association: CallingAssociation,
        call_id: int,
        stub: bytes,
        handle: ContextHandle,
        queue: Queue,
        template: SendTemplate,
        values: SentValues,
    ) -> None:
        """Let a message wait for the end of the turn; the handle has been joined."""
        message = TemplatedSend(self, association, call_id, stub, handle, template, values)
        association.calls[call_id] = message
        self._turn.add(queue, template.kind, message, len(values[BODY]))


class TemplatedSend:
    """A message on its way into a queue (`fast.turn`), and its request in flight."""

    __slots__ = (
        "_association",
        "_begun",
        "_call_id",
        "_handle",
        "_lane",
        "_ordinal",
        "_stub",
        "_template",
        "_values",
    )

    def __init__(
        self,
        lane: SendLane,
        association: CallingAssociation,
        call_id: int,
        stub: bytes,
        handle: ContextHandle,
        template: SendTemplate,
        values: SentValues,
    ) -> None:
        self._lane, self._association, self._call_id = lane, association, call_id
        self._stub, self._handle, self._template = stub, handle, template
        self._values, self._ordinal = values, 0
        self._begun = stopwatch()
        association.pending += 1
        lane.path.pending += 1

    # A request in flight (`rpc.call.InFlight`)

    @property
    def context(self) -> PresentationContext:
        return self._lane.context

    @property
    def security(self) -> SecurityContext:
        return self._lane.security

    def notify_cancelled(self) -> None:
        """Do nothing: a send does not wait for anything that could be cancelled."""

    def notify_abandoned(self) -> None:
        """Take it out of those in flight; it is carried out all the same."""

    # A message of a turn

    @property
    def priority(self) -> int:
        return self._values[PRIORITY]

    @property
    def administration(self) -> FormatName | None:
        return self._template.administration

    @property
    def sender(self) -> Identity:
        return self._lane.security.identity

    def compose(self, ordinal: int, now: int) -> bytes:
        """The message's packet."""
        self._ordinal = ordinal
        reach, live, priority, tag, correlation, label, body = self._values
        reach = time_to_reach_queue(reach, now)
        filled = self._template.packet.filled
        return filled(ordinal, now, reach, live, priority, tag, correlation, label, body)

    @staticmethod
    def composed(
        messages: "Sequence[TemplatedSend]", ordinals: Sequence[int], now: int
    ) -> Composed:
        """The columns of several messages; packets of neighbours with one template are made
        together."""
        if len(messages) < FEWEST:
            return composed_each(messages, ordinals, now)
        packets: list[bytes] = []
        priorities: list[int] = []
        expiries: list[int] = []
        for template, group in groupby(messages, _TEMPLATE):
            raw, lives, *others = zip(*map(_VALUES, group), strict=True)
            reaches = _each(lambda reach: time_to_reach_queue(reach, now // 1000), raw)
            numbers = ordinals[len(packets) : len(packets) + len(lives)]
            packets += template.packet.filled_many(numbers, now // 1000, reaches, lives, *others)
            priorities += others[0]
            expiries += _each(lambda live: expiry_at(now // 1000, live, now), lives)
        for message, ordinal in zip(messages, ordinals, strict=True):
            message._ordinal = ordinal
        return Composed(packets, priorities, expiries)

    def expiry(self, now: int) -> int:
        """The time of its expiry, if it is sent now."""
        return expiry_at(now // 1000, self._values[TIME_TO_BE_RECEIVED], now)

    def accepted(self) -> None:
        """Drop the body while the commit is under way: the store has it."""
        self._stub, self._values = b"", _GONE

    @property
    def response(self) -> bytes:
        """The answer."""
        return self._template.response(self._ordinal)

    def stored(self) -> None:
        """Answer the request, if its client is still there."""
        association, lane, call_id = self._association, self._lane, self._call_id
        association.pending -= 1
        lane.path.pending -= 1
        if association.calls.get(call_id) is self:
            del association.calls[call_id]
            if lane.durations is not None:
                lane.durations.add(stopwatch() - self._begun)
            response = self._template.response(self._ordinal)
            association.send_stub(call_id, lane.context, lane.security, response)
        self._handle.leave()

    def carefully(self) -> None:
        """Have the careful path run it."""
        call, calls = self._as_call(), self._association.calls
        self._association.pending -= 1
        self._lane.path.pending -= 1
        if calls.get(self._call_id) is self:
            calls[self._call_id] = call
        else:
            call.fate = ABANDONED
        self._handle.leave()
        self._lane.path.run_carefully(call)

    def _as_call(self) -> Call:
        lane = self._lane
        call = Call(
            self._association, self._call_id, lane.context, lane.opnum, lane.security, self._stub
        )
        call.begun, call.durations = self._begun, lane.durations
        return call


_TEMPLATE, _VALUES = attrgetter("_template"), attrgetter("_values")


def _each(function: Callable[[int], int], column: Sequence[int]) -> list[int]:
    """The function's values for a column of numbers, most of which are equal."""
    known = {each: function(each) for each in set(column)}
    return list(map(known.__getitem__, column))
