"""`rpcqm` with a queue manager whose sessions are deliberately wrong.

It announces another window, and refuses every message for a queue called `stream`.
"""

import sys
from typing import Any

from rpcqm.adm.message import Message
from rpcqm.binary.session import Session
from rpcqm.cli.main import main
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.protection import RejectedError

_destination = Arrivals.destination
_send_parameters = Session._send_parameters


def _refusing(self: Any, message: Message) -> Any:
    name = str(message.attributes.destination_queue_format_name)
    if name.endswith("stream"):
        raise RejectedError(MessageClass.MQMSG_CLASS_NACK_Q_DELETED)
    return _destination(self, message)


def _with_another_window(self: Any, recoverable_ack_timeout: int, ack_timeout: int) -> None:
    self.window_size = 32
    _send_parameters(self, recoverable_ack_timeout, ack_timeout)


if __name__ == "__main__":
    wrong_arrivals: Any = Arrivals
    wrong_arrivals.destination = _refusing
    wrong_session: Any = Session
    wrong_session._send_parameters = _with_another_window
    sys.exit(main())
