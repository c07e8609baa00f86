"""The numbers by which queue managers name reads of each other's queues ([MS-MQRR] 3.1.4.7)."""

from rpcqm.adm.enums import MessageSeekAction
from rpcqm.codec.types.mqvalues import ReceiveAction

PEEKS: frozenset[int] = frozenset(action for action in ReceiveAction if "PEEK" in action.name)
"""The actions that leave the message in the queue."""

SEEKS: dict[int, MessageSeekAction] = {
    ReceiveAction.MQ_LOOKUP_PEEK_CURRENT: MessageSeekAction.SEEK_CURRENT,
    ReceiveAction.MQ_LOOKUP_PEEK_NEXT: MessageSeekAction.SEEK_NEXT,
    ReceiveAction.MQ_LOOKUP_PEEK_PREV: MessageSeekAction.SEEK_PREVIOUS,
    ReceiveAction.MQ_LOOKUP_RECEIVE_CURRENT: MessageSeekAction.SEEK_CURRENT,
    ReceiveAction.MQ_LOOKUP_RECEIVE_NEXT: MessageSeekAction.SEEK_NEXT,
    ReceiveAction.MQ_LOOKUP_RECEIVE_PREV: MessageSeekAction.SEEK_PREVIOUS,
}
"""The actions that find a message by its lookup identifier, and how."""

_LAST = 0xFFFF_FFFF_FFFF_FFFF
_FROM_AN_END = {
    MessageSeekAction.SEEK_FIRST: (MessageSeekAction.SEEK_NEXT, 0),
    MessageSeekAction.SEEK_LAST: (MessageSeekAction.SEEK_PREVIOUS, _LAST),
}
"""Behind 0 is the first message, before all ones the last one (G32)."""
_ACTIONS = {(seek, action in PEEKS): action for action, seek in SEEKS.items()}


def lookup_action(seek: MessageSeekAction, identifier: int, peek: bool) -> tuple[int, int]:
    """The action, and the lookup identifier, with which another queue manager looks so."""
    seek, identifier = _FROM_AN_END.get(seek, (seek, identifier))
    return _ACTIONS[seek, peek], identifier
