"""Types of idl/rpcqm_sending.idl: written by scripts/generate."""

from rpcqm.codec.interface import OperationRequest, Value
from rpcqm.codec.types.mqmq import QUEUE_FORMAT

class R_SetDeadLetterQueueRequest(OperationRequest[R_SetDeadLetterQueueResponse]):
    dwQMContext: int
    pDeadLetterQueue: QUEUE_FORMAT | None
    def __init__(
        self, *, dwQMContext: int, pDeadLetterQueue: QUEUE_FORMAT | None = ...
    ) -> None: ...

class R_SetDeadLetterQueueResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...

class R_AddDestinationRequest(OperationRequest[R_AddDestinationResponse]):
    dwQMContext: int
    pQueueFormat: QUEUE_FORMAT
    def __init__(self, *, dwQMContext: int, pQueueFormat: QUEUE_FORMAT) -> None: ...

class R_AddDestinationResponse(Value):
    result: int
    def __init__(self, *, result: int) -> None: ...
