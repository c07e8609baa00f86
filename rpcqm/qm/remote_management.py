"""What other queue managers tell administrators, and what is ordered there ([MS-MQMR] 3.2).

The service gives what calls the other queue manager.
"""

from typing import Protocol

from rpcqm.base.completion import Completion
from rpcqm.codec.names.format_name import FormatName


class RemoteManagement(Protocol):
    """Asks and orders by qmmgmt, of a queue or without a name of the machine.

    Every method may fail with MQError; MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE without an answer,
    MQ_ERROR_ACCESS_DENIED where no account is for that machine.
    """

    def told(self, machine: str, name: FormatName | None, identifier: int) -> Completion[object]:
        """The value of a property, None for VT_NULL."""

    def ordered(self, machine: str, name: FormatName | None, action: str) -> Completion[None]: ...
