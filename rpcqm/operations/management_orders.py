"""Orders to the queue manager and to queues that lead elsewhere, over whatever door (G530).

Doors have words of their own for them ([MS-MQMR] 3.1.4.2); the audit log has one for each.
"""

from collections.abc import Callable

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.operations.audit import note, ordered, refusals
from rpcqm.qm.access import require_administrator
from rpcqm.qm.management import Management

MACHINE, STORE = "the queue manager", "the store"
"""The objects of orders, as the log names them."""
CONNECT, DISCONNECT, TIDY = "CONNECT", "DISCONNECT", "TIDY"
PAUSE, RESUME, EOD_RESEND = "PAUSE", "RESUME", "EOD_RESEND"
"""The texts of actions."""

_CALLED = {TIDY: "compact", EOD_RESEND: "resend"}
_UNKNOWN = "act"
"""The log's name for an unrecognized order: its text is a stranger's."""


def called(action: str) -> str:
    """The audit log's name of an action; all texts that are no action share one name."""
    if action in (CONNECT, DISCONNECT, TIDY, PAUSE, RESUME, EOD_RESEND):
        return _CALLED.get(action, action.lower())
    return _UNKNOWN


class ManagementOrders:
    """Refuses others than administrators, and with INVALID_PARAMETER a text that is no action."""

    def __init__(self, management: Management) -> None:
        self._management = management

    def of_machine(self, identity: Identity, action: str) -> Completion[None]:
        """Order an action of the queue manager; done when its changes are durable."""
        about = STORE if action == TIDY else MACHINE
        with ordered(identity, called(action), about):
            require_administrator(identity)
            act = self._management.machine_actions.get(action)
            if act is None:
                raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"{action!r:.40} is no action")
            return act(identity.name)

    def of_queue(
        self,
        identity: Identity,
        name: FormatName,
        action: str,
        find: Callable[[FormatName], Queue] | None = None,
    ) -> Completion[None] | None:
        """Order an action of a queue to elsewhere; `find` finds it, unless all queues are meant."""
        with refusals(identity, called(action), str(name)):
            require_administrator(identity)
        if action not in self._management.queue_actions:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"{action!r:.40} is no action")
        queue = (find or self._management.find)(name)
        begun = self._management.act_on_queue(queue, action)
        note(identity, called(action), queue.full_name)
        return begun
