"""A queue manager that impacket walks through, and what other doors tell of it."""

import base64
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_der_x509_certificate

from rpcqm.base.errors import HResult
from rpcqm.binary.own_keys import create_key, load_key
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_settings import QueueInformation, QueueProperties, QueueSettings
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.certificates import certificate_of
from tests.support.dcom.com_objects import ORDINARY, add_accounts, create_queue
from tests.support.dcom.dcom_client import ENABLED
from tests.support.dcom.dcom_impacket import connected
from tests.support.dcom.impacket_walker import Walker, Way, methods
from tests.support.qm.directories import DIRECTORY, write_directory

ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"
"""A queue of a machine that never answers."""
REPORTS = "LDAP://CN=r"
_LISTED = DIRECTORY.replace(
    'label = "Reports"',
    f"label = \"Reports\"\nsddl = 'D:(A;;GA;;;WD)'\ndirectory_path = '{REPORTS}'",
)
_USER = 'name = "alice"\nsid = "S-1-5-21-1-2-3-1001"\ncertificates = ["MIIB"]'

NOT_IMPLEMENTED = {
    "IMSMQApplication": ["get_Properties"],
    "IMSMQCoordinatedTransactionDispenser": ["get_Properties"],
    "IMSMQDestination": [
        *("get_IADs", "putref_IADs", "get_Destinations", "putref_Destinations"),
        "get_Properties",
    ],
    "IMSMQEvent": ["get_Properties"],
    "IMSMQMessage": ["get_Properties"],
    "IMSMQQuery": ["get_Properties"],
    "IMSMQQueue": ["get_Properties"],
    "IMSMQQueueInfo": ["get_Properties", "get_Security", "put_Security"],
    "IMSMQQueueInfos": ["get_Properties"],
    "IMSMQTransaction": ["get_Transaction", "get_Properties"],
    "IMSMQTransactionDispenser": ["get_Properties"],
}
"""The 18 methods for which [MC-MQAC] has no more than a name."""
ALWAYS_REFUSED: dict[str, HResult] = {
    **{
        f"{family}.{name}": HResult.E_NOTIMPL
        for family, names in NOT_IMPLEMENTED.items()
        for name in names
    },
    "IMSMQCoordinatedTransactionDispenser.BeginTransaction": HResult.MQ_ERROR_DTC_CONNECT,
    "IMSMQApplication.get_DirectoryServiceServer": HResult.MQ_ERROR_NO_DS,
}
"""What answers here as without a coordinator, and with a directory that is a file."""


@dataclass
class Place:
    machine: PrivateQueueManager
    client: BlockingClient
    certificate: bytes
    """What the queue manager signs with, which the directory has for boss."""
    sid: str
    """Of boss, as whom impacket logs on: an administrator."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @contextlib.contextmanager
    def walk(self, way: Way, families: Sequence[str]) -> Iterator[Walker]:
        """A walker who must call every method of interfaces, in a state where it can do its work.

        Those of ALWAYS_REFUSED fail, with that code only.
        """
        with connected(self.machine.endpoint("epm")[1], "boss") as connection:
            walker = Walker(connection, way)
            yield walker
        wanted = {each for each in methods() if each.partition(".")[0] in families}
        assert wanted - walker.succeeded == wanted & ALWAYS_REFUSED.keys()
        for each in wanted & ALWAYS_REFUSED.keys():
            assert walker.refused[each] == {ALWAYS_REFUSED[each]}, each

    def refused(self, walker: Walker, held: Any, *arguments: object) -> None:
        """Call what an object's interface has in NOT_IMPLEMENTED."""
        family = held.interface.rstrip("0123456789")
        for name in NOT_IMPLEMENTED[family]:
            given = arguments if name.startswith("put") else ()
            assert walker.refusal(held, name, *given) == HResult.E_NOTIMPL

    # Queues, by qmcomm, qmmgmt and RemoteRead.

    def new_path(self) -> str:
        return rf".\private$\walked-{next(self._numbers)}"

    def queue(self, settings: QueueSettings = ORDINARY) -> str:
        """The path of a new queue for everybody."""
        path = self.new_path()
        create_queue(self.client, path, settings)
        return path

    def properties(self, name: FormatName) -> QueueProperties:
        return self.client.run(self.client.queues.properties(name))

    def information(self, path: str) -> QueueInformation:
        """What qmmgmt tells of a queue."""
        return self.client.run(self.client.management.queue_information(named(path)))

    def private_name(self, path: str) -> str:
        """The PRIVATE= name of a queue, as qmcomm tells it."""
        return str(self.client.run(self.client.queues.format_name(PathName.parse(path))))

    def send(self, path: str, *labels: str) -> None:
        """Messages with a body each, by qmcomm2."""
        with self.client.open_sender(named(path)) as sender:
            for label in labels:
                sender.send(OutgoingMessage(b"body of " + label.encode(), label=label))

    def browse(self, path: str) -> list[ReceivedMessage]:
        """What is in a queue, by RemoteRead."""
        with self.client.open_reader(named(path), peek_only=True) as reader:
            return list(reader.browse())

    def labels(self, path: str) -> list[str]:
        return [message.label for message in self.browse(path)]

    def told(self, name: str | None, *properties: Any) -> list[Any]:
        """What qmmgmt tells of a queue, or of the machine."""
        of = None if name is None else FormatName.parse(name)
        return self.client.run(self.client.management._information(of, properties))


def named(path: str) -> FormatName:
    return FormatName.of_path(PathName.parse(path))


@contextlib.contextmanager
def served_place(directory: Path) -> Iterator[Place]:
    """A queue manager that signs, with a directory and a machine elsewhere that never answers."""
    create_key(directory / "key.pem")
    certificate = certificate_of(load_key(str(directory / "key.pem")))
    text = load_der_x509_certificate(certificate).public_bytes(Encoding.PEM)
    (directory / "key.crt").write_bytes(text)
    listed = write_directory(directory, _LISTED)
    configuration = (
        f"name = 'WORKSTATION'\nhttp_port = 0\ndirectory_file = '{listed}'\n{ENABLED}"
        f"[binary]\npeers = 'elsewhere=127.0.0.1:1'\n"
        f"signing_key = '{directory}/key.pem'\nsigning_certificate = '{directory}/key.crt'\n"
    )
    with private_queue_manager((), configuration) as machine, machine.client() as client:
        add_accounts(client)
        accounts = client.run(client.accounts.list())
        sid = next(account.sid for account in accounts if account.name == "boss")
        encoded = base64.b64encode(certificate).decode()
        user = f'name = "boss"\nsid = "{sid}"\ncertificates = ["{encoded}"]'
        write_directory(directory, _LISTED.replace(_USER, user))
        yield Place(machine, client, certificate, sid)
