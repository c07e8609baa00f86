"""Queues as objects of qmcomm, and the queries about the server ([MS-MQMP] 3.1.4.5 to .11)."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.adm.directory_object import Enterprise
from rpcqm.base.identity import EVERYONE, Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import format_name_of, queue_format_of
from rpcqm.codec.properties import PropVariant, QueueProperty, VarType
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqmq import QUEUE_FORMAT
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel
from rpcqm.codec.types.qmcomm import OBJECT_FORMAT, OBJECT_FORMAT_u
from rpcqm.config.directory import load_directory
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.qm.directories import OWN_QUEUE, THEIR_QUEUE, write_directory
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.rpc.callers import (
    ADMINISTRATOR,
    ALICE,
    BOB,
    LEVEL_NONE,
    LEVEL_PRIVACY,
    NOBODY,
    CallServer,
)
from tests.support.rpc.dependent_client import Client, object_of, served_clients
from tests.support.rpc.remote_reader import CLIENT, format_of, status_name

ORDERS = r"DIRECT=OS:.\private$\orders"
OWNER, GROUP, DACL, SACL = 1, 2, 4, 8
P = QueueProperty


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_clients(qm)


@pytest.fixture
def client(server: CallServer) -> Client:
    return Client(server.connect(ADMINISTRATOR, transport=NCALRPC))


# Creating

TYPE = UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")


@pytest.mark.conformance("MQMP-op-6")
@pytest.mark.parametrize(
    ("identifier", "value", "attribute", "expected"),
    [
        pytest.param(
            getattr(P, f"PROPID_Q_{name}"),
            *row,
            marks=pytest.mark.conformance(
                f"MQMP-prop-PROPID_Q_{name}", f"MQMQ-prop-PROPID_Q_{name}"
            ),
        )
        for name, *row in (
            ("TYPE", TYPE, "type", TYPE),
            ("PATHNAME", r".\private$\orders", "pathname", r"WORKSTATION\private$\orders"),
            ("JOURNAL", 1, "journaling", True),
            ("QUOTA", 77, "quota", 77),
            ("JOURNAL_QUOTA", 78, "journal_quota", 78),
            ("LABEL", "things", "label", "things"),
            ("AUTHENTICATE", 1, "authentication", True),
            ("PRIV_LEVEL", 2, "privacy_level", QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY),
            ("TRANSACTION", 1, "transactional", True),
            ("MULTICAST_ADDRESS", "234.1.1.1:80", "multicast_address", "234.1.1.1:80"),
            ("BASEPRIORITY", 5, "base_priority", 0),
        )
    ],
)
def test_a_queue_is_created_with_its_properties(
    qm: RunningQueueManager,
    client: Client,
    identifier: QueueProperty,
    value: Any,
    attribute: str,
    expected: Any,
) -> None:
    assert client.create(r".\private$\orders", {identifier: value}) == "MQ_OK"
    assert getattr(qm.find(), attribute) == expected


ONLY_IN_DIRECTORIES = (
    "SCOPE",
    "QMID",
    "PARTITIONID",
    "SEQNUM",
    "HASHKEY",
    "LABEL_HASHKEY",
    "FULL_PATH",
    "NAME_SUFFIX",
    "SECURITY",
    "OBJ_SECURITY",
    "SECURITY_INFORMATION",
)


@pytest.mark.parametrize(
    "identifier",
    [
        pytest.param(
            getattr(P, f"PROPID_Q_{name}"),
            marks=pytest.mark.conformance(f"MQMQ-prop-PROPID_Q_{name}"),
        )
        for name in ONLY_IN_DIRECTORIES
    ],
)
def test_a_property_that_only_directories_have_is_known_and_not_allowed(
    qm: RunningQueueManager, client: Client, identifier: QueueProperty
) -> None:
    """G172; a number that no queue has is MQ_ERROR_ILLEGAL_PROPID."""
    queue = qm.create()
    assert client.get_properties(queue, identifier) == "MQ_ERROR_PROPERTY_NOTALLOWED"
    null: dict[QueueProperty, Any] = {identifier: PropVariant(VarType.VT_NULL)}
    assert client.set_properties(queue, null) == "MQ_ERROR_PROPERTY_NOTALLOWED"
    assert client.create(r".\private$\more", null) == "MQ_ERROR_PROPERTY_NOTALLOWED"


@pytest.mark.conformance("MQMP-op-6")
def test_a_created_queue_is_durable(qm: RunningQueueManager, client: Client) -> None:
    assert client.create(r"WORKSTATION\PRIVATE$\orders") == "MQ_OK"
    qm.restart()
    assert qm.find().label == "label"


@pytest.mark.conformance("MQMP-op-6")
def test_an_existing_queue_is_not_altered(qm: RunningQueueManager, client: Client) -> None:
    assert client.create(r".\private$\orders") == "MQ_OK"
    status = client.create(r".\PRIVATE$\ORDERS", {P.PROPID_Q_LABEL: "another"})
    assert status == "MQ_ERROR_QUEUE_EXISTS"
    assert qm.find().label == "label"


@pytest.mark.conformance("MQMP-op-6", "MQMQ-path-private")
@pytest.mark.parametrize(
    ("path", "properties", "fields", "status"),
    [
        (r".\private$\q", None, {"dwObjectType": 2}, "MQ_ERROR_INVALID_PARAMETER"),
        (r".\q", None, {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r"elsewhere\private$\q", None, {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r".\private$\q;sub", None, {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (".\\private$\\a,b", None, {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (".\\private$\\foo$", None, {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("nothing", None, {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r".\private$\q", {P.PROPID_Q_INSTANCE: TYPE}, {}, "MQ_ERROR_PROPERTY_NOTALLOWED"),
        (r".\private$\q", {P.PROPID_Q_SCOPE: 1}, {}, "MQ_ERROR_PROPERTY_NOTALLOWED"),
        (r".\private$\q", {P.PROPID_Q_CREATE_TIME: 1}, {}, "MQ_ERROR_PROPERTY_NOTALLOWED"),
        (
            r".\private$\q",
            {P.PROPID_Q_LABEL: PropVariant(VarType.VT_UI4, 1)},
            {},
            "MQ_ERROR_PROPERTY",
        ),
        (r".\private$\q", {P.PROPID_Q_JOURNAL: 2}, {}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (r".\private$\q", {P.PROPID_Q_PRIV_LEVEL: 3}, {}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (r".\private$\q", {P.PROPID_Q_LABEL: "x" * 125}, {}, "MQ_ERROR_LABEL_TOO_LONG"),
        (r".\private$\q", {P.PROPID_Q_LABEL: "\U0001f600" * 63}, {}, "MQ_ERROR_LABEL_TOO_LONG"),
        (
            r".\private$\q",
            {P.PROPID_Q_PATHNAME: r".\private$\other"},
            {},
            "MQ_ERROR_ILLEGAL_PROPERTY_VALUE",
        ),
        (r".\private$\q", None, {"aProp": [99]}, "MQ_ERROR_ILLEGAL_PROPID"),
        (
            r".\private$\q",
            None,
            {"pSecurityDescriptor": b"none", "SDSize": 4},
            "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR",
        ),
        (
            r".\private$\q",
            None,
            {"pSecurityDescriptor": b"", "SDSize": 0},
            "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR",
        ),
    ],
)
def test_what_cannot_be_created_is_refused(
    qm: RunningQueueManager,
    client: Client,
    path: str,
    properties: dict[QueueProperty, Any] | None,
    fields: dict[str, Any],
    status: str,
) -> None:
    assert client.create(path, properties, **fields) == status
    assert qm.engine.registry.find_by_path(r".\private$\q") is None
    qm.create(r"private$\q")
    assert client.create(path, properties, **fields) == status


@pytest.mark.conformance("MQMP-op-6")
def test_a_queue_gets_the_descriptor_it_is_created_with(
    qm: RunningQueueManager, client: Client
) -> None:
    descriptor = parse_sddl(f"O:{ALICE.sid}D:(A;;0x4;;;{BOB.sid})")
    assert client.create(r".\private$\orders", descriptor=descriptor.encode()) == "MQ_OK"
    kept = SecurityDescriptor.decode(qm.find().security)
    assert (kept.owner, kept.dacl) == (descriptor.owner, descriptor.dacl)


def test_only_who_may_creates_queues(qm: RunningQueueManager, server: CallServer) -> None:
    nobody = Client(server.connect(Identity("joe", EVERYONE), LEVEL_PRIVACY, NCALRPC))
    assert nobody.create(r".\private$\orders") == "MQ_ERROR_ACCESS_DENIED"


# Deleting


@pytest.mark.conformance("MQMP-op-9", "MQMP-packet-OBJECT_FORMAT")
def test_a_queue_is_deleted(qm: RunningQueueManager, client: Client) -> None:
    qm.create()
    assert client.status("R_QMDeleteObject", pObjectFormat=object_of(ORDERS)) == "MQ_OK"
    assert qm.engine.registry.find_by_path(r".\private$\orders") is None
    status = client.status("R_QMDeleteObject", pObjectFormat=object_of(ORDERS))
    assert status == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.conformance("MQMP-op-9")
@pytest.mark.parametrize(
    ("name", "status"),
    [
        (r"DIRECT=OS:.\private$\order_queue$", "MQ_ERROR_ACCESS_DENIED"),
        (f"{ORDERS};journal", "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (r"DIRECT=OS:elsewhere\private$\orders", "MQ_ERROR_QUEUE_NOT_FOUND"),
        (f"PUBLIC={CLIENT}", "MQ_ERROR_QUEUE_NOT_FOUND"),
    ],
)
def test_only_queues_of_applications_are_objects(
    qm: RunningQueueManager, client: Client, name: str, status: str
) -> None:
    qm.create()
    assert client.status("R_QMDeleteObject", pObjectFormat=object_of(name)) == status


def test_an_object_without_a_name_is_refused(client: Client) -> None:
    nothing = OBJECT_FORMAT(ObjType=1, u=OBJECT_FORMAT_u(1, None))
    status = client.status("R_QMDeleteObject", pObjectFormat=nothing)
    assert status == "MQ_ERROR_INVALID_PARAMETER"


@pytest.mark.conformance("MQMP-op-9")
def test_deleting_asks_the_descriptor(qm: RunningQueueManager, server: CallServer) -> None:
    qm.create(security=parse_sddl("O:BAD:(A;;0x10000;;;BA)").encode())
    bob = Client(server.connect(BOB, transport=NCALRPC))
    status = bob.status("R_QMDeleteObject", pObjectFormat=object_of(ORDERS))
    assert status == "MQ_ERROR_ACCESS_DENIED"


# Properties


@pytest.mark.conformance("MQMP-op-10")
def test_properties_are_told(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create(label="things", quota=5, transactional=True)
    expected: dict[QueueProperty, Any] = {
        P.PROPID_Q_INSTANCE: queue.identifier,
        P.PROPID_Q_TYPE: UUID(int=0),
        P.PROPID_Q_PATHNAME: r"WORKSTATION\private$\orders",
        P.PROPID_Q_JOURNAL: 0,
        P.PROPID_Q_QUOTA: 5,
        P.PROPID_Q_BASEPRIORITY: 0,
        P.PROPID_Q_JOURNAL_QUOTA: 0xFFFFFFFF,
        P.PROPID_Q_LABEL: "things",
        P.PROPID_Q_CREATE_TIME: qm.clock.now() // 1000,
        P.PROPID_Q_MODIFY_TIME: qm.clock.now() // 1000,
        P.PROPID_Q_AUTHENTICATE: 0,
        P.PROPID_Q_PRIV_LEVEL: 1,
        P.PROPID_Q_TRANSACTION: 1,
        P.PROPID_Q_PATHNAME_DNS: r"workstation.example.org\private$\orders",
        P.PROPID_Q_ADS_PATH: "",
    }
    assert client.get_properties(queue, *expected) == [
        identifier.variant(value) for identifier, value in expected.items()
    ]


@pytest.mark.conformance(
    *(
        f"MQMP-prop-PROPID_Q_{name}"
        for name in ("INSTANCE", "CREATE_TIME", "MODIFY_TIME", "PATHNAME_DNS", "ADS_PATH")
    )
)
@pytest.mark.parametrize(
    "identifier",
    [
        P.PROPID_Q_INSTANCE,
        P.PROPID_Q_CREATE_TIME,
        P.PROPID_Q_MODIFY_TIME,
        P.PROPID_Q_PATHNAME_DNS,
        P.PROPID_Q_ADS_PATH,
    ],
)
def test_some_properties_can_only_be_read(
    qm: RunningQueueManager, client: Client, identifier: QueueProperty
) -> None:
    queue = qm.create()
    (variant,) = client.get_properties(queue, identifier)
    assert variant.vt is identifier.vartype
    assert client.set_properties(queue, {identifier: variant}) == "MQ_ERROR_PROPERTY_NOTALLOWED"


@pytest.mark.conformance("MQMP-op-10")
def test_a_property_is_asked_for_by_its_type_or_null(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create(label="things")
    ask = (queue, P.PROPID_Q_LABEL)
    assert (
        client.get_properties(*ask, given=PropVariant(VarType.VT_LPWSTR, ""))[0].value == "things"
    )
    assert client.get_properties(*ask, given=PropVariant(VarType.VT_UI4, 0)) == "MQ_ERROR_PROPERTY"
    assert client.get_properties(queue, P.PROPID_Q_SCOPE) == "MQ_ERROR_PROPERTY_NOTALLOWED"
    assert client.get_properties(queue, 99) == "MQ_ERROR_ILLEGAL_PROPID"


@pytest.mark.conformance("MQMP-op-10")
def test_reading_properties_asks_the_descriptor(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create(security=parse_sddl("O:BAD:(A;;0x20;;;BA)").encode())
    bob = Client(server.connect(BOB, transport=NCALRPC))
    assert bob.get_properties(queue, P.PROPID_Q_LABEL) == "MQ_ERROR_ACCESS_DENIED"


@pytest.mark.conformance("MQMP-prop-PROPID_Q_MULTICAST_ADDRESS")
def test_a_multicast_address_can_be_given_and_taken(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create()
    multicast = P.PROPID_Q_MULTICAST_ADDRESS
    empty = PropVariant(VarType.VT_EMPTY)
    assert client.get_properties(queue, multicast) == [empty]
    assert client.set_properties(queue, {multicast: "234.1.1.1:80"}) == "MQ_OK"
    assert client.get_properties(queue, multicast)[0].value == "234.1.1.1:80"
    assert client.set_properties(queue, {multicast: empty}) == "MQ_OK"
    assert queue.multicast_address is None


@pytest.mark.conformance("MQMQ-prop-PROPID_Q_MULTICAST_ADDRESS")
@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:80", "234.1.1.1", "234.1.1.1:", "234.1.1.1:65536", "234.1.1.1: 80", "234.1.1.1:+8"],
)
def test_a_multicast_address_follows_its_grammar(
    qm: RunningQueueManager, client: Client, address: str
) -> None:
    queue = qm.create()
    changes: dict[QueueProperty, Any] = {P.PROPID_Q_MULTICAST_ADDRESS: address}
    assert client.set_properties(queue, changes) == "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"
    assert queue.multicast_address is None


@pytest.mark.conformance("MQMP-op-11")
def test_properties_are_changed_for_good(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    qm.advance(5_000)
    changes: dict[QueueProperty, PropVariant | Any] = {
        P.PROPID_Q_LABEL: "new",
        P.PROPID_Q_QUOTA: 9,
        P.PROPID_Q_BASEPRIORITY: 3,
    }
    assert client.set_properties(queue, changes) == "MQ_OK"
    qm.restart()
    queue = qm.find()
    assert (queue.label, queue.quota, queue.base_priority) == ("new", 9, 0)
    assert queue.modify_time == queue.create_time + 5


@pytest.mark.conformance("MQMP-op-11")
def test_a_wrong_change_changes_nothing(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    for properties, status in (
        ({P.PROPID_Q_TRANSACTION: 1}, "MQ_ERROR_PROPERTY_NOTALLOWED"),
        ({P.PROPID_Q_PATHNAME: "x"}, "MQ_ERROR_PROPERTY_NOTALLOWED"),
        ({P.PROPID_Q_LABEL: "x" * 125}, "MQ_ERROR_LABEL_TOO_LONG"),
        ({P.PROPID_Q_QUOTA: PropVariant(VarType.VT_UI1, 1)}, "MQ_ERROR_PROPERTY"),
    ):
        both: dict[QueueProperty, Any] = {P.PROPID_Q_JOURNAL: 1} | properties
        assert client.set_properties(queue, both) == status
    assert (queue.journaling, queue.label) == (False, "")


# Path names


def find_format(client: Client, path: str, structure: QUEUE_FORMAT | None) -> Any:
    given = OBJECT_FORMAT(ObjType=1, u=OBJECT_FORMAT_u(1, structure))
    return client.caller.call(
        "R_QMObjectPathToObjectFormat", lpwcsPathName=path, pObjectFormat=given
    )


@pytest.mark.conformance("MQMP-op-12")
def test_a_path_name_leads_to_a_private_format_name(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create()
    response = find_format(client, r".\PRIVATE$\Orders", queue_format_of(None))
    assert response.result == 0
    name = format_name_of(response.pObjectFormat.u.value)
    own = qm.engine.queue_manager.identifier
    assert name == FormatName.private(own, queue.private_queue_number)
    assert client.open(name)


@pytest.mark.conformance("MQMP-op-12")
@pytest.mark.parametrize(
    ("path", "identifier"),
    [(r"WORKSTATION\reports", OWN_QUEUE), (r"SERVER\orders", THEIR_QUEUE)],
)
def test_a_path_name_in_the_directory_leads_to_a_public_format_name(
    qm: RunningQueueManager, tmp_path: Path, path: str, identifier: UUID
) -> None:
    source = write_directory(tmp_path)
    qm.restart(replace(SETTINGS, directory=lambda: load_directory(source)))
    client = Client(served_clients(qm).connect(ADMINISTRATOR, transport=NCALRPC))
    response = find_format(client, path, queue_format_of(None))
    assert response.result == 0
    assert str(format_name_of(response.pObjectFormat.u.value)) == f"PUBLIC={identifier}"


@pytest.mark.conformance("MQMP-op-12")
@pytest.mark.parametrize(
    ("path", "structure", "status"),
    [
        (r".\private$\none", queue_format_of(None), "MQ_ERROR_QUEUE_NOT_FOUND"),
        (r"elsewhere\private$\orders", queue_format_of(None), "MQ_ERROR_QUEUE_NOT_FOUND"),
        ("nothing", queue_format_of(None), "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r".\private$\orders", None, "MQ_ERROR_INVALID_PARAMETER"),
        (r".\private$\orders", format_of(ORDERS), "MQ_ERROR_INVALID_PARAMETER"),
    ],
)
def test_a_path_name_of_no_queue_here_is_refused(
    qm: RunningQueueManager,
    client: Client,
    path: str,
    structure: QUEUE_FORMAT | None,
    status: str,
) -> None:
    qm.create()
    assert status_name(find_format(client, path, structure).result) == status


# About the server


@pytest.mark.conformance("MQMP-op-28")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(0, "", marks=pytest.mark.conformance("MQMP-registry-0")),
        pytest.param(1, "345600", marks=pytest.mark.conformance("MQMP-registry-1")),
        pytest.param(
            2,
            "00000000-0000-0000-0000-000000000000",
            marks=pytest.mark.conformance("MQMP-registry-2"),
        ),
        pytest.param(3, "6.2.9200", marks=pytest.mark.conformance("MQMP-registry-3")),
        pytest.param(4, "own", marks=pytest.mark.conformance("MQMP-registry-4")),
    ],
)
def test_five_texts_can_be_asked_for(
    qm: RunningQueueManager, client: Client, query: int, expected: str
) -> None:
    queue_manager = qm.engine.queue_manager
    queue_manager.queue_manager_version = "6.2.9200.1"
    response = client.caller.call("R_QMQueryQMRegistryInternal", dwQueryType=query)
    own = str(queue_manager.identifier)
    assert response.lplpMQISServer == (own if expected == "own" else expected)


@pytest.mark.conformance("MQMP-registry-0", "MQMP-registry-2", "MQMP-op-28")
def test_a_directory_and_its_servers_are_told(qm: RunningQueueManager, client: Client) -> None:
    queue_manager = qm.engine.queue_manager
    queue_manager.directory_server_list = ["DC1", "DC2"]
    queue_manager.enterprise_reference = Enterprise(identifier=TYPE)
    for query, text in ((0, "DC1,DC2"), (2, str(TYPE)), (3, "0.0.0")):
        response = client.caller.call("R_QMQueryQMRegistryInternal", dwQueryType=query)
        assert response.lplpMQISServer == text
    status = client.status("R_QMQueryQMRegistryInternal", dwQueryType=5)
    assert status == "MQ_ERROR_INVALID_PARAMETER"


@pytest.mark.conformance("MQMP-registry-1", "MQMP-op-28")
def test_the_default_time_to_reach_a_queue_is_that_of_the_directory(
    qm: RunningQueueManager, tmp_path: Path
) -> None:
    source = write_directory(tmp_path)
    qm.restart(replace(SETTINGS, directory=lambda: load_directory(source)))
    client = Client(served_clients(qm).connect(ADMINISTRATOR, transport=NCALRPC))
    response = client.caller.call("R_QMQueryQMRegistryInternal", dwQueryType=1)
    assert response.lplpMQISServer == "3600"


@pytest.mark.conformance("MQMP-op-31")
@pytest.mark.parametrize(
    ("kind", "port"),
    [
        pytest.param(0, 2103, marks=pytest.mark.conformance("MQMP-port-IP_HANDSHAKE")),
        pytest.param(1, 2105, marks=pytest.mark.conformance("MQMP-port-IP_READ")),
        pytest.param(2, 0, marks=pytest.mark.conformance("MQMP-port-IPX_HANDSHAKE")),
        pytest.param(3, 0, marks=pytest.mark.conformance("MQMP-port-IPX_READ")),
        (4, 0),
    ],
)
def test_everybody_is_told_the_ports(server: CallServer, kind: int, port: int) -> None:
    caller = server.connect(NOBODY, LEVEL_NONE)
    assert caller.call("R_QMGetRTQMServerPort", fIP=kind).result == port
