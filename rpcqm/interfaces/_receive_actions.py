"""The message that a read of RemoteRead selects ([MS-MQRR] 3.1.4.7, ulAction)."""

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.types.mqvalues import ReceiveAction
from rpcqm.qm.receive_actions import SEEKS

PEEK_NEXT = ReceiveAction.MQ_ACTION_PEEK_NEXT
RECEIVE = ReceiveAction.MQ_ACTION_RECEIVE

_FROM_THE_START = (ReceiveAction.MQ_LOOKUP_PEEK_NEXT, ReceiveAction.MQ_LOOKUP_RECEIVE_NEXT)


def check_parameters(action: int, lookup_identifier: int, cursor: int, timeout: int) -> None:
    """Raise MQError(MQ_ERROR_INVALID_PARAMETER) for contradictory parameters.

    NEXT behind 0 is the first message, and PREV before all ones the last one (G32).
    """
    if action in SEEKS:
        valid = cursor == 0 and timeout == 0
        valid = valid and (lookup_identifier != 0 or action in _FROM_THE_START)
    elif action == PEEK_NEXT:
        valid = lookup_identifier == 0 and cursor != 0
    else:
        valid = lookup_identifier == 0 and (
            action == RECEIVE or action == ReceiveAction.MQ_ACTION_PEEK_CURRENT
        )
    if not valid:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"action {action:#x}")


def check_lookup(action: int, lookup_identifier: int, cursor: int, timeout: int) -> None:
    """Raise MQError(MQ_ERROR_INVALID_PARAMETER) unless it is a read by lookup identifier."""
    if action not in SEEKS:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"action {action:#x}")
    check_parameters(action, lookup_identifier, cursor, timeout)
