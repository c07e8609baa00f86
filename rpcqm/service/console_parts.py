"""What the interface for programs and the pages are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rpcqm.base.admission import Admission
from rpcqm.base.clock import Clock
from rpcqm.base.metrics import Metrics
from rpcqm.config import Configuration
from rpcqm.operations.operations import Operations
from rpcqm.service.accounts import Accounts
from rpcqm.service.speed import Speed

if TYPE_CHECKING:
    import ssl


@dataclass(eq=False, repr=False)
class ConsoleParts:
    """What answers requests; `is_ready` tells whether the queue manager does its work."""

    operations: Operations
    accounts: Accounts
    clock: Clock
    admission: Admission
    metrics: Metrics
    configuration: Configuration
    instance: str
    is_ready: Callable[[], bool]
    speed: Speed = None
    context: "ssl.SSLContext | None" = None
