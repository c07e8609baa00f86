"""A queue manager whose queues are reached through objects, and by RemoteRead to compare."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from rpcqm.client.blocking import BlockingClient
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.passwords import nt_hash
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.dcom import clsids
from tests.support.dcom.dcom_client import ENABLED, DcomClient, Reference

ADMINISTRATOR = NtlmCredentials("boss", PASSWORD)
EVERYBODY = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
"""Every right of a queue to everybody, other queue managers without an account among them."""
ORDINARY = QueueSettings()
QUEUE = r".\private$\orders"
STREAM = r".\private$\stream"


def octets(values: bytes) -> Variant:
    return Variant(VARENUM.VT_ARRAY | VARENUM.VT_UI1, SafeArray(VARENUM.VT_UI1, values))


def text(value: str) -> Variant:
    return Variant(VARENUM.VT_BSTR, value)


def number(value: int) -> Variant:
    return Variant(VARENUM.VT_I4, value)


YES, NO = Variant(VARENUM.VT_BOOL, True), Variant(VARENUM.VT_BOOL, False)


@dataclass
class Objects:
    """A client of objects, and one of RemoteRead and qmcomm, of the same queue manager."""

    machine: PrivateQueueManager
    com: DcomClient
    client: BlockingClient

    def create(self, clsid: UUID, interface: str) -> Reference:
        return self.com.create(clsid, interface)

    def get(self, reference: Reference, name: str) -> object:
        return self.com.call(reference, f"get_{name}")

    def put(self, reference: Reference, name: str, value: object) -> None:
        self.com.call(reference, f"put_{name}", value)

    def message(self, interface: str = "IMSMQMessage4") -> Reference:
        return self.create(clsids.MSMQ_MESSAGE, interface)

    def destination(self, name: str = "", *, is_open: bool = True) -> Reference:
        """A destination by a format name, or else by the queue's path name."""
        made = self.create(clsids.MSMQ_DESTINATION, "IMSMQDestination")
        self.put(made, "FormatName" if name else "PathName", name or QUEUE)
        if is_open:
            self.com.call(made, "Open")
        return made

    def queue_info(self, path: str = QUEUE) -> Reference:
        made = self.create(clsids.MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        self.put(made, "PathName", path)
        return made

    def open(self, access: QueueAccessType, path: str = QUEUE) -> Reference:
        found = self.com.call(self.queue_info(path), "Open", int(access), 0)
        assert isinstance(found, Reference)
        return found

    def private_name(self, path: str = QUEUE) -> str:
        """The PRIVATE= name of a queue, as qmcomm tells it."""
        return str(self.client.run(self.client.queues.format_name(PathName.parse(path))))

    def send(self, message: Reference, destination: Reference, transaction: object = None) -> None:
        self.com.call(message, "Send", destination, transaction)

    def received(self, path: str = QUEUE) -> Reference:
        """The first message of a queue, received by Receive with everything that it has."""
        queue = self.open(QueueAccessType.RECEIVE_ACCESS, path)
        found = self.com.call(queue, "Receive", number(0), YES, YES, number(0), YES)
        assert isinstance(found, Reference)
        return found

    def read(self, path: str = QUEUE) -> ReceivedMessage:
        """The first message of a queue, received by RemoteRead."""
        name = FormatName.of_path(PathName.parse(path))
        with self.client.open_reader(name) as reader, reader.receive(0) as message:
            return message

    def bodies(self, path: str = QUEUE) -> list[bytes]:
        """The bodies in a queue, by RemoteRead."""
        name = FormatName.of_path(PathName.parse(path))
        with self.client.open_reader(name, peek_only=True) as reader:
            return [message.body for message in reader.browse()]

    def empty(self) -> None:
        for path in (QUEUE, STREAM):
            name = FormatName.of_path(PathName.parse(path))
            with self.client.open_reader(name) as reader:
                reader.purge()


@contextlib.contextmanager
def served_objects(configuration: str = ENABLED) -> Iterator[Objects]:
    """A queue manager with two queues for everybody, one of them transactional."""
    with private_queue_manager((), configuration) as machine, machine.client() as client:
        add_accounts(client)
        create_queue(client, QUEUE)
        create_queue(client, STREAM, QueueSettings(transactional=True))
        with DcomClient(machine.endpoint("epm")) as com:
            yield Objects(machine, com, client)


def add_accounts(client: BlockingClient) -> str:
    """The accounts alice and boss, an administrator; the SID of alice."""
    client.run(client.accounts.add("boss", nt_hash(PASSWORD), ["administrators"]))
    return client.run(client.accounts.add("alice", nt_hash(PASSWORD)))


def create_queue(client: BlockingClient, path: str, settings: QueueSettings = ORDINARY) -> None:
    """A queue for everybody."""
    client.run(client.queues.create(PathName.parse(path), settings, parse_sddl(EVERYBODY)))
