"""Types of idl/qmcomm2.idl: written by scripts/generate."""

from typing import Any

from rpcqm.codec.interface import OperationRequest, Value
from rpcqm.codec.types.mqmq import OBJECTID, QUEUE_FORMAT
from rpcqm.codec.types.qmcomm import CACCreateRemoteCursor, CACTransferBufferV2

class QMSendMessageInternalExRequest(OperationRequest[QMSendMessageInternalExResponse]):
    pQueueFormat: QUEUE_FORMAT
    ptb: CACTransferBufferV2
    pMessageID: OBJECTID | None
    def __init__(
        self,
        *,
        pQueueFormat: QUEUE_FORMAT,
        ptb: CACTransferBufferV2,
        pMessageID: OBJECTID | None = ...,
    ) -> None: ...

class QMSendMessageInternalExResponse(Value):
    pMessageID: OBJECTID | None
    result: int
    def __init__(self, *, pMessageID: OBJECTID | None = ..., result: int) -> None: ...

class rpc_ACSendMessageExRequest(OperationRequest[rpc_ACSendMessageExResponse]):
    hQueue: Any
    ptb: CACTransferBufferV2
    pMessageID: OBJECTID | None
    def __init__(
        self, *, hQueue: Any, ptb: CACTransferBufferV2, pMessageID: OBJECTID | None = ...
    ) -> None: ...

class rpc_ACSendMessageExResponse(Value):
    pMessageID: OBJECTID | None
    result: int
    def __init__(self, *, pMessageID: OBJECTID | None = ..., result: int) -> None: ...

class rpc_ACReceiveMessageExRequest(OperationRequest[rpc_ACReceiveMessageExResponse]):
    hQMContext: int
    ptb: CACTransferBufferV2
    def __init__(self, *, hQMContext: int, ptb: CACTransferBufferV2) -> None: ...

class rpc_ACReceiveMessageExResponse(Value):
    ptb: CACTransferBufferV2
    result: int
    def __init__(self, *, ptb: CACTransferBufferV2, result: int) -> None: ...

class rpc_ACCreateCursorExRequest(OperationRequest[rpc_ACCreateCursorExResponse]):
    hQueue: Any
    pcc: CACCreateRemoteCursor
    def __init__(self, *, hQueue: Any, pcc: CACCreateRemoteCursor) -> None: ...

class rpc_ACCreateCursorExResponse(Value):
    pcc: CACCreateRemoteCursor
    result: int
    def __init__(self, *, pcc: CACCreateRemoteCursor, result: int) -> None: ...
