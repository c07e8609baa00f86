"""Dispatch in a process that another one may be speaking in the place of (`base.outlet`)."""

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.metrics import Metrics, stopwatch
from rpcqm.base.outlet import SENTENCE, Outlet, current
from rpcqm.rpc.call import Call
from rpcqm.rpc.dispatch import Dispatcher
from rpcqm.rpc.interface_registry import OperationEntry
from rpcqm.rpc.limits import Limits


def dispatcher(metrics: Metrics, limits: Limits) -> Dispatcher:
    """What runs the calls of a server in this process."""
    outlet = current()
    return (
        Dispatcher(metrics, limits)
        if outlet is None
        else GuardedDispatcher(metrics, limits, outlet)
    )


class GuardedDispatcher(Dispatcher):
    """Refuses calls while the outlet does, and notes which connections have had one run."""

    def __init__(self, metrics: Metrics, limits: Limits, outlet: Outlet) -> None:
        super().__init__(metrics, limits)
        self._outlet = outlet

    def dispatch(self, call: Call) -> None:
        operations = call.context.operations
        entry = operations[call.opnum] if call.opnum < len(operations) else None
        if entry is None or entry.of_process:
            super().dispatch(call)
        elif self._outlet.refusing:
            self.calls += 1
            call.begun = stopwatch()
            call.durations = entry.durations
            self._refuse_service(entry, call)
        else:
            call.association.ran = True
            super().dispatch(call)

    def _refuse_service(self, entry: OperationEntry, call: Call) -> None:
        """Answer a call that cannot be carried out now with the status for that."""
        error = MQError(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, SENTENCE)
        try:
            request = self.request_of(entry, call)
            use = self._resolve(entry, call, request) if entry.handles_in else None
        except Exception as refusal:  # no call may go without an answer
            self._refuse(entry, call, refusal)
        else:
            self._fail(entry, call, request, error)
            if use is not None:
                use.end()
