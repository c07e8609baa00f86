"""Questions and orders to a queue manager, here or elsewhere ([MC-MQAC] 3.3.6.2, 3.3.6.3).

Only administrators ask and order, and another queue manager only where an account is configured
for it (G292).
"""

from collections.abc import Awaitable

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import ManagementMachineProperty, ManagementQueueProperty
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac.machine import Machine
from rpcqm.operations.audit import COM, ordered, ordered_from
from rpcqm.operations.management_orders import called
from rpcqm.qm.access import require_administrator, require_observer
from rpcqm.qm.remote_management import RemoteManagement


def is_elsewhere(machine: Machine, computer: str | None) -> bool:
    """Whether a computer is another one; no name means this one."""
    return bool(computer) and not machine.names.is_local(computer or "")


async def ask(
    machine: Machine,
    identity: Identity,
    computer: str | None,
    subject: FormatName | None,
    identifier: ManagementMachineProperty | ManagementQueueProperty,
) -> object:
    """QMMgmt Get Info: the value of a property of a queue, or of a machine; None for VT_NULL."""
    require_observer(identity)
    if computer and is_elsewhere(machine, computer):
        return await _elsewhere(machine, computer).told(computer, subject, identifier)
    management = machine.management
    if isinstance(identifier, ManagementMachineProperty) or subject is None:
        return management.machine_property(ManagementMachineProperty(identifier)).value
    return management.queue_property(management.find(subject), identifier).value


async def order(
    machine: Machine,
    call: ComCall,
    computer: str | None,
    subject: FormatName | None,
    action: str,
) -> None:
    """QMMgmt Action: of an outgoing queue, or of a machine; completes with the action."""
    with ordered_from(call.peer, COM):
        begun = _begin(machine, call.identity, computer, subject, action)
    if begun is not None:
        await begun


def _begin(
    machine: Machine,
    identity: Identity,
    computer: str | None,
    subject: FormatName | None,
    action: str,
) -> Awaitable[None] | None:
    if computer and is_elsewhere(machine, computer):
        with ordered(identity, called(action), str(subject or computer)):
            require_administrator(identity)
            return _elsewhere(machine, computer).ordered(computer, subject, action)
    if subject is None:
        return machine.management_orders.of_machine(identity, action)
    return machine.management_orders.of_queue(identity, subject, action)


def _elsewhere(machine: Machine, computer: str) -> RemoteManagement:
    if machine.manage_elsewhere is None:
        raise MQError(HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE, computer)
    return machine.manage_elsewhere
