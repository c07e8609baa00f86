"""From a call to its handler, and from what the handler did to the answer.

This is the one place where an outcome becomes a reply:

- a value is encoded; a status alone becomes a response with that status;
- MQError becomes the status that the method returns, or a fault where the method has none or
  the interface says that it throws;
- RpcFault becomes its fault; DecodeError of a request becomes RPC_X_BAD_STUB_DATA;
- anything else is logged with its traceback and becomes nca_s_fault_unspec.

The connection lives on in all of these cases.
"""

import inspect
from collections.abc import Callable
from functools import partial

from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, NtStatus, RpcFault
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics, stopwatch
from rpcqm.codec.interface import ContextHandleParameter, Value
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import NULL_HANDLE, ContextHandle, check_use
from rpcqm.rpc.interface_registry import OperationEntry, Shortcut
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security import verification
from rpcqm.rpc.security.verification import TamperedError, may_be_verified

_log = get_logger("rpc")

_ORDINARY = frozenset(
    {
        HResult.MQ_ERROR_IO_TIMEOUT,
        HResult.MQ_ERROR_OPERATION_CANCELLED,
        HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED,
        HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
        HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE,
        NtStatus.STATUS_NOT_FOUND,
        *(status for status in HResult if "BUFFER" in status.name),
    }
)
"""Statuses that readers get all the time: ordinary answers, which are not logged as refusals."""

_UNSENDABLE = frozenset(
    {
        0x00000000,
        0x80000001,
        0x80000002,
        0x80000003,
        0xC0000005,
        0xC0000006,
        0xC000001D,
        0xC0000096,
        0xC00000AA,
        0xC00000FD,
        0xC0000194,
        0xC0000235,
        0xC0000409,
        0xC0000420,
    }
)
"""The statuses that a fault must not carry ([MS-RPCE] 3.3.3.5.1)."""


PATIENCE, LOOKED_AT = 64, 16
"""After PATIENCE calls of a connection that no shortcut has taken, shortcuts see one of LOOKED_AT.

So a client that they never serve does not pay for those that they serve.
"""


class _HandleUse:
    """The context handles that a running call uses."""

    __slots__ = ("closing", "pending", "serialized", "started")

    def __init__(self) -> None:
        self.closing: list[ContextHandle] = []
        self.serialized: list[ContextHandle] = []
        self.pending = self.started = False

    def end(self) -> None:
        for handle in self.closing:
            handle.closing = False
        for handle in self.serialized:
            handle.release()


class Dispatcher:
    """Runs calls; `calls` is how many there were, `metrics` counts refusals and failures.

    `pending` is how many calls wait, for their handlers or for their turn, also those whose
    clients have given them up. Beyond `limits` new calls are refused: of one connection by its
    limit of calls, of all connections together so that each may still have one.
    """

    def __init__(self, metrics: Metrics | None = None, limits: Limits | None = None) -> None:
        self.metrics = metrics if metrics is not None else Metrics()
        self.calls = 0
        self.pending = 0
        self.metrics.gauges["rpc.calls"] = lambda: self.calls
        self.metrics.gauges["rpc.pending"] = lambda: self.pending
        self.before_close: Callable[[], None] = _nothing
        """Called before handles end: what was put off may need them."""
        self.limit(limits or Limits())

    def limit(self, limits: Limits) -> None:
        """Set how many calls may wait from now on."""
        self.most_pending, self.most_of_one = limits.waiting_calls, limits.calls

    def dispatch(self, call: Call) -> None:
        """Run one call; it is answered now, or when its handler's completion is resolved."""
        self.calls += 1
        call.begun = stopwatch()
        operations = call.context.operations
        opnum = call.opnum
        entry: OperationEntry | None = operations[opnum] if opnum < len(operations) else None
        if entry is None:
            error = RpcFault(FaultStatus.nca_s_op_rng_error, f"opnum {opnum} is not served")
            self._fault(None, call, error, executed=False)
            return
        call.durations = entry.durations
        if call.association.pending:
            busy = self._busy(call)
            if busy:
                error = RpcFault(FaultStatus.nca_s_server_too_busy, busy)
                self._fault(entry, call, error, executed=False)
                return
        try:
            if call.security.assured_level < entry.minimum_level:
                level = entry.minimum_level.name
                raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, f"{level} is needed")
            if entry.check is not None:
                entry.check(call)
            if entry.shortcut is not None and self._is_taken(entry.shortcut, call):
                return
        except Exception as error:  # no call may go without an answer
            self._refuse(entry, call, error)
        else:
            self.run_carefully(call)

    def _is_taken(self, shortcut: Shortcut, call: Call) -> bool:
        """Whether a shortcut has taken a call, and will answer it.

        It sees few calls of a connection from which no shortcut has taken one for long. It never
        sees a stub in big-endian order, or one that may end with a verification trailer.
        """
        association = call.association
        association.untaken += 1
        if association.untaken > PATIENCE and association.untaken % LOOKED_AT:
            return False
        octets = call.stub_data
        if call.big_endian or (call.security.auth_type and may_be_verified(octets)):
            return False
        if not shortcut.take(call, self):
            return False
        association.untaken = 0
        return True

    def run_carefully(self, call: Call) -> None:
        """Run a call that may be run, whatever is in it."""
        entry: OperationEntry | None = call.context.operations[call.opnum]
        assert entry is not None
        try:
            request = self.request_of(entry, call)
            use = self._resolve(entry, call, request) if entry.handles_in else None
        except Exception as error:  # no call may go without an answer
            self._refuse(entry, call, error)
        else:
            if use is None:
                self._run(entry, call, request, None)
            else:
                self._run_in_turn(entry, call, request, use)

    @staticmethod
    def request_of(entry: OperationEntry, call: Call) -> Value:
        """What is asked for; raises DecodeError, and TamperedError for what was changed."""
        decode = entry.decode_big_endian if call.big_endian else entry.decode
        stub = call.stub_data
        if call.security.auth_type and may_be_verified(stub):
            return _verified(call, decode)
        return decode(stub)

    def _busy(self, call: Call) -> str:
        """Why a call of a connection that has calls pending is refused; "" if it is not refused."""
        if call.association.pending >= self.most_of_one:
            return "too many calls"
        return "too many calls in all" if self.pending >= self.most_pending else ""

    def pend(self, call: Call, change: int) -> None:
        """Count a call that waits, or does so no longer."""
        self.pending += change
        call.association.pending += change

    def _refuse(self, entry: OperationEntry, call: Call, error: Exception) -> None:
        """Answer a call that no handler has seen with the fault of `error`."""
        if isinstance(error, DecodeError):
            error = RpcFault(FaultStatus.RPC_X_BAD_STUB_DATA, str(error))
        if isinstance(error, RpcFault):
            self._fault(entry, call, error, executed=False)
        else:
            self._fail(entry, call, None, error)
        if isinstance(error, TamperedError):
            call.association.end(error.detail)

    # Context handles.

    def _resolve(self, entry: OperationEntry, call: Call, request: Value) -> _HandleUse | None:
        """Put the records in the place of the wire's octets; raises RpcFault (G53)."""
        use: _HandleUse | None = None
        for parameter in entry.handles_in:
            handle = find_handle(call, parameter, getattr(request, parameter.name))
            setattr(request, parameter.name, handle)
            if handle is None:
                continue
            if parameter.direction != "in":
                use = use or _HandleUse()
                use.closing.append(handle)
            elif parameter.serialize:
                use = use or _HandleUse()
                use.serialized.append(handle)
        return use

    def _run_in_turn(
        self, entry: OperationEntry, call: Call, request: Value, use: _HandleUse
    ) -> None:
        """Run a call when the serialized handles it uses are free; a close never waits."""
        if use.closing:
            self.before_close()
        for handle in use.closing:
            handle.closing = True
        if len(use.serialized) == 1 and use.serialized[0].try_acquire():
            use.started = True
            self._run(entry, call, request, use)
            return
        use.serialized.sort(key=lambda handle: handle.wire)
        self._acquire(use.serialized, 0, partial(self._run_used, entry, call, request, use))
        if not use.started:
            use.pending = True
            self.pend(call, 1)

    def _acquire(self, handles: list[ContextHandle], first: int, run: Callable[[], None]) -> None:
        """Take the handles from `first` on, one after the other, and run then."""
        for number in range(first, len(handles)):
            if not handles[number].try_acquire():
                handles[number].acquire(partial(self._acquire, handles, number + 1, run))
                return
        run()

    def _run_used(self, entry: OperationEntry, call: Call, request: Value, use: _HandleUse) -> None:
        """Run a call whose turn has come, unless its client or its handle has gone meanwhile."""
        use.started = True
        if use.pending:
            self.pend(call, -1)
        if call.abandoned or any(handle.closed for handle in use.serialized):
            fault = RpcFault(FaultStatus.nca_s_fault_context_mismatch, "the handle was closed")
            self._fault(entry, call, fault, executed=False)
            use.end()
        else:
            self._run(entry, call, request, use)

    # Outcomes.

    def _run(
        self, entry: OperationEntry, call: Call, request: Value, use: _HandleUse | None
    ) -> None:
        try:
            outcome = entry.handler(call, request)
            if outcome.__class__ is not entry.response_class:
                if inspect.iscoroutine(outcome):
                    outcome = start(outcome)
                if isinstance(outcome, Completion):
                    call.stub_data = b""
                    self.pend(call, 1)
                    finish = partial(self._finish, entry, call, request, use)
                    outcome.add_done_callback(finish)
                    return
                outcome = entry.response_of_status(request, outcome)
            if entry.handles_out:
                _put_handles(entry, outcome)
            call.association.send_response(call, entry.encode(outcome))
        except Exception as error:  # a mistake of a handler ends its call, not the server
            self._fail(entry, call, request, error)
        if use is not None:
            use.end()

    def _finish(
        self,
        entry: OperationEntry,
        call: Call,
        request: Value,
        use: _HandleUse | None,
        completion: Completion[object],
    ) -> None:
        self.pend(call, -1)
        if completion.error is None:
            self._respond(entry, call, request, completion.result())
        else:
            self._fail(entry, call, request, completion.error)
        if use is not None:
            use.end()

    def _respond(self, entry: OperationEntry, call: Call, request: Value, outcome: object) -> None:
        """Encode a response, or make one of a status."""
        try:
            if not isinstance(outcome, entry.response_class):
                outcome = entry.response_of_status(request, outcome)
            if entry.handles_out:
                _put_handles(entry, outcome)
            stub = entry.encode(outcome)
        except Exception as error:  # an outcome that cannot be encoded is a mistake, too
            self._fail(entry, call, None, error)
        else:
            call.association.send_response(call, stub)

    def _fail(
        self, entry: OperationEntry, call: Call, request: Value | None, error: BaseException
    ) -> None:
        """Answer a call whose handler has failed with `error`."""
        if isinstance(error, MQError) and entry.returns_status and request is not None:
            if error.status not in _ORDINARY:
                self._log_refusal(entry, call, error)
            self._respond(entry, call, request, error.status)
        elif isinstance(error, MQError):
            self._fault(entry, call, RpcFault(error.status, error.detail))
        elif isinstance(error, RpcFault):
            self._fault(entry, call, error)
        else:
            self.metrics.count("rpc.failures")
            self.metrics.count("rpc.faults")
            _log.error(
                "a call failed",
                peer=call.peer,
                call_id=call.call_id,
                operation=entry.name,
                exc_info=error,
            )
            call.fault(FaultStatus.nca_s_fault_unspec)

    def _fault(
        self, entry: OperationEntry | None, call: Call, error: RpcFault, executed: bool = True
    ) -> None:
        self._log_refusal(entry, call, error)
        self.metrics.count("rpc.faults")
        status = int(error.status)
        if status in _UNSENDABLE:
            status = FaultStatus.nca_s_fault_unspec
        call.fault(status, executed)

    def _log_refusal(
        self, entry: OperationEntry | None, call: Call, error: MQError | RpcFault
    ) -> None:
        """Log one line for each refused call, whether it gets a fault or a status."""
        self.metrics.count("rpc.refusals")
        _log_line(entry.name if entry is not None else None, call, error)


def find_handle(call: Call, parameter: ContextHandleParameter, wire: bytes) -> ContextHandle | None:
    """The handle that a caller means and may use; raises RpcFault (G53)."""
    if wire == NULL_HANDLE and parameter.direction != "in":
        return None
    security = call.security
    handle = call.association.group.handles.find(wire)
    check_use(
        handle,
        security.identity,
        security.assured_level,
        call.context.interface if parameter.strict else None,
        parameter.type_name if parameter.type_strict else None,
    )
    return handle


def _nothing() -> None:
    """Nothing waits."""


def _verified(call: Call, decode: Callable[[bytes], Value]) -> Value:
    """The request in front of what may be a verification trailer, which is checked."""
    stub = call.stub_data
    place = verification.place(stub)
    if place < 0:
        return decode(stub)
    try:
        request = decode(stub[:place])
    except DecodeError:
        return decode(stub)  # the octets only look like a trailer: they are data
    verification.verify(stub[place:], call)
    return request


def _put_handles(entry: OperationEntry, response: Value) -> None:
    """Put the wire's octets in the place of records of context handles."""
    for name in entry.handles_out:
        handle = getattr(response, name)
        if isinstance(handle, ContextHandle):
            handle = NULL_HANDLE if handle.closed else handle.wire
        setattr(response, name, NULL_HANDLE if handle is None else handle)


def _log_line(operation: str | None, call: Call, error: MQError | RpcFault) -> None:
    _log.info(
        "a call was refused",
        peer=call.peer,
        call_id=call.call_id,
        opnum=call.opnum,
        operation=operation,
        identity=call.identity.name,
        authentication_level=call.authentication_level.name,
        status=error.status.name,
        detail=error.detail,
    )


def log_refusal(operation: str, call: Call, error: MQError) -> None:
    """Log a call that is refused in a response of its own, unless that happens all the time."""
    if error.status not in _ORDINARY:
        _log_line(operation, call, error)
