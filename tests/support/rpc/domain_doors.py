"""The doors by which an account of a domain comes in with its tickets."""

import base64
import http.client
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from rpcqm.base.errors import HResult, NtStatus, RpcFault
from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.testing import PrivateQueueManager
from tests.support.dcom.clsids import MSMQ_QUEUE_INFO
from tests.support.dcom.dcom_client import ComError, DcomClient
from tests.support.rpc.callers import Fault
from tests.support.rpc.network_caller import NetworkCaller, RefusedError
from tests.support.rpc.remote_reader import Reader
from tests.support.waiting import PATIENCE

gssapi = pytest.importorskip("gssapi")
kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)

_addresses = (f"127.9.{number >> 8}.{number & 255}" for number in itertools.count(1))
"""Each request comes from elsewhere, so that wrong tokens do not slow those of later tests."""


class Doors:
    """What a queue manager lets the bearer of a ticket do with one of its queues.

    Each door says whether he may read the queue; None if he is nobody here. `host` and `web` are
    the names in the principals of the services.
    """

    def __init__(
        self, machine: PrivateQueueManager, realm: str, host: str, web: str, queue: str
    ) -> None:
        self.machine, self.queue = machine, queue
        self._service, self._web = f"host/{host}@{realm}", f"HTTP@{web}"

    @property
    def format_name(self) -> str:
        return f"DIRECT=OS:{self.machine.ready.name}\\private$\\{self.queue}"

    def credentials(self, cache: str) -> Any:
        return kerberos.KerberosCredentials(self._service, ccache=cache)

    def caller(self, cache: str) -> NetworkCaller:
        """A connection for RemoteRead."""
        address, credentials = self.machine.endpoint("rpc"), self.credentials(cache)
        return NetworkCaller(address, "remoteread", credentials=credentials)

    def by_rpc(self, cache: str) -> bool | None:
        try:
            with self.caller(cache) as caller:
                Reader(caller.caller).open(self.format_name)
        except (RefusedError, ConnectionError):
            return None
        except Fault as fault:
            denied = HResult.MQ_ERROR_ACCESS_DENIED, NtStatus.STATUS_ACCESS_DENIED
            return False if fault.status in denied else None
        return True

    def by_dcom(self, cache: str) -> bool | None:
        try:
            with DcomClient(self.machine.endpoint("epm"), self.credentials(cache)) as client:
                info = client.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
                client.call(info, "put_PathName", f".\\private$\\{self.queue}")
                client.call(info, "Open", 32, 0)
        except ComError as error:
            return None if error.status is not HResult.MQ_ERROR_ACCESS_DENIED else False
        except (RpcFault, AuthenticationError, OSError):
            return None
        return True

    def by_http(self, cache: str) -> bool | None:
        return {200: True, 403: False}.get(self.ask(cache, f"/queues/{self.queue}/messages"))

    def ask(self, cache: str, path: str) -> int:
        """The status of an answer of /api/v1."""
        connection = http.client.HTTPConnection(
            *self.machine.endpoint("console"),
            timeout=PATIENCE,
            source_address=(next(_addresses), 0),
        )
        headers = {"Authorization": f"Negotiate {self.token(cache)}"}
        connection.request("GET", f"/api/v1{path}", headers=headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def token(self, cache: str) -> str:
        """A token of Kerberos for HTTP."""
        credentials = gssapi.Credentials(usage="initiate", store={"ccache": cache})
        service = gssapi.Name(self._web, gssapi.NameType.hostbased_service)
        context: Any = gssapi.SecurityContext(name=service, creds=credentials, usage="initiate")
        return base64.b64encode(context.step() or b"").decode()


Door = Callable[[Doors, str], bool | None]
DOORS: list[Door] = [Doors.by_rpc, Doors.by_dcom, Doors.by_http]
