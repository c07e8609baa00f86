"""Each queue property of qmcomm: created with, changed to, told ([MS-MQMP] 3.1.1.12)."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.properties import QueueProperty
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.sddl import format_sddl, parse_sddl
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, BOB
from tests.support.rpc.dependent_client import Client, object_of, served_clients

PATH = r"WORKSTATION\private$\orders"
ORDERS = r"DIRECT=OS:.\private$\orders"
OWNER, GROUP, DACL, SACL = 1, 2, 4, 8
P = QueueProperty
FIRST_TYPE, SECOND_TYPE = UUID(int=1), UUID(int=2)


@dataclass(frozen=True)
class Row:
    """A property: its value by default, one that is given, one that it is changed to.

    None: it cannot be given, or changed. `told` is what is told of the value that was given.
    """

    name: str
    default: Any
    given: Any = None
    changed: Any = None
    told: Any = None


ROWS = (
    Row("TYPE", UUID(int=0), FIRST_TYPE, SECOND_TYPE, FIRST_TYPE),
    Row("PATHNAME", PATH, r".\private$\ORDERS", None, r"WORKSTATION\private$\orders"),
    Row("JOURNAL", 0, 1, 0, 1),
    Row("QUOTA", 0xFFFFFFFF, 77, 79, 77),
    Row("JOURNAL_QUOTA", 0xFFFFFFFF, 78, 80, 78),
    Row("LABEL", "", "things", "others", "things"),
    Row("AUTHENTICATE", 0, 1, 0, 1),
    Row("PRIV_LEVEL", 1, 2, 0, 2),
    Row("TRANSACTION", 0, 1, None, 1),
    Row("MULTICAST_ADDRESS", None, "234.1.1.1:80", "234.1.1.2:81", "234.1.1.1:80"),
    Row("INSTANCE", "identifier"),
    Row("CREATE_TIME", "create_time"),
    Row("MODIFY_TIME", "modify_time"),
    Row("PATHNAME_DNS", "qualified_pathname"),
    Row("ADS_PATH", "directory_path"),
)
MARKED = [
    pytest.param(row, marks=pytest.mark.conformance(f"MQMP-prop-PROPID_Q_{row.name}"), id=row.name)
    for row in ROWS
]


@pytest.fixture
def client(qm: RunningQueueManager) -> Client:
    return Client(served_clients(qm).connect(ADMINISTRATOR, transport=NCALRPC))


def identifier_of(row: Row) -> QueueProperty:
    return QueueProperty[f"PROPID_Q_{row.name}"]


def value_of(row: Row) -> Any:
    """A value of the property's own type, whether it can be set or not."""
    samples = {"INSTANCE": FIRST_TYPE, "CREATE_TIME": 1, "MODIFY_TIME": 1}
    return samples.get(row.name, "x") if row.given is None else row.given


def told(client: Client, row: Row) -> Any:
    (variant,) = client.get_properties(r"DIRECT=OS:.\private$\orders", identifier_of(row))
    return variant.value


@pytest.mark.conformance("MQMP-op-10")
@pytest.mark.parametrize("row", MARKED)
def test_a_property_is_told_as_it_is(qm: RunningQueueManager, client: Client, row: Row) -> None:
    """Times differ, so that one cannot be taken for the other."""
    queue = qm.create()
    queue.modify_time += 7
    queue.directory_path, queue.full_path = "LDAP://server/CN=orders", "CN=orders"
    read_only = row.given is None
    assert told(client, row) == (getattr(queue, row.default) if read_only else row.default)


@pytest.mark.conformance("MQMP-op-6")
@pytest.mark.parametrize("row", MARKED)
def test_a_property_can_be_given_or_not(client: Client, row: Row) -> None:
    status = client.create(r".\private$\orders", {identifier_of(row): value_of(row)})
    if row.given is None:
        assert status == "MQ_ERROR_PROPERTY_NOTALLOWED"
    else:
        assert status == "MQ_OK"
        assert told(client, row) == row.told


@pytest.mark.conformance("MQMP-op-11")
@pytest.mark.parametrize("row", MARKED)
def test_a_property_can_be_changed_or_not(
    qm: RunningQueueManager, client: Client, row: Row
) -> None:
    name = r"DIRECT=OS:.\private$\orders"
    qm.create()
    before = told(client, row)
    value = value_of(row) if row.changed is None else row.changed
    status = client.set_properties(name, {identifier_of(row): value})
    if row.changed is None:
        assert status == "MQ_ERROR_PROPERTY_NOTALLOWED"
        assert told(client, row) == before
    else:
        assert status == "MQ_OK"
        assert told(client, row) == row.changed


@pytest.mark.conformance("MQMP-prop-PROPID_Q_BASEPRIORITY")
def test_a_private_queue_takes_a_base_priority_and_ignores_it(client: Client) -> None:
    """[MS-MQMQ] 2.3.1.6."""
    row = Row("BASEPRIORITY", 0)
    priority = QueueProperty.PROPID_Q_BASEPRIORITY
    assert client.create(r".\private$\orders", {priority: 5}) == "MQ_OK"
    assert told(client, row) == 0
    assert client.set_properties(r"DIRECT=OS:.\private$\orders", {priority: 5}) == "MQ_OK"
    assert told(client, row) == 0


@pytest.mark.conformance("MQMP-prop-PROPID_Q_MULTICAST_ADDRESS", "MQMP-op-11")
def test_a_transactional_queue_gets_no_multicast_address_later(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create(transactional=True)
    change: dict[QueueProperty, Any] = {P.PROPID_Q_MULTICAST_ADDRESS: "234.1.1.1:80"}
    assert client.set_properties(queue, change) == "MQ_ERROR_PROPERTIES_CONFLICT"
    assert queue.multicast_address is None


@pytest.mark.conformance("MQMP-prop-PROPID_Q_LABEL")
def test_a_label_is_counted_in_utf_16_characters(qm: RunningQueueManager, client: Client) -> None:
    longest = "\U0001f600" * 62
    assert client.create(r".\private$\orders", {P.PROPID_Q_LABEL: longest}) == "MQ_OK"
    assert qm.find().label == longest
    too_long: dict[QueueProperty, Any] = {P.PROPID_Q_LABEL: longest + longest[0]}
    assert client.create(r".\private$\more", too_long) == "MQ_ERROR_LABEL_TOO_LONG"


@pytest.mark.conformance("MQMP-prop-PROPID_Q_PATHNAME", "MQMP-prop-PROPID_Q_PATHNAME_DNS")
def test_path_names_follow_the_name_of_the_machine(qm: RunningQueueManager, client: Client) -> None:
    assert client.create(r".\private$\orders") == "MQ_OK"
    renamed = replace(SETTINGS, computer_name="PC2", qualified_computer_name="pc2.example.net")
    qm.restart(renamed)
    client = Client(served_clients(qm).connect(ADMINISTRATOR, transport=NCALRPC))
    name, full_name = client.get_properties(qm.find(), P.PROPID_Q_PATHNAME, P.PROPID_Q_PATHNAME_DNS)
    assert (name.value, full_name.value) == (
        r"PC2\private$\orders",
        r"pc2.example.net\private$\orders",
    )
    assert qm.find(r"private$\orders;JOURNAL").pathname == r"PC2\private$\orders;JOURNAL"


@pytest.mark.conformance("MQMP-op-7")
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (OWNER, f"O:{BOB.sid}G:BUD:(A;;0xf003f;;;WD)S:(AU;SA;0x4;;;WD)"),
        (GROUP, "O:BAG:BGD:(A;;0xf003f;;;WD)S:(AU;SA;0x4;;;WD)"),
        (SACL, "O:BAG:BUD:(A;;0xf003f;;;WD)S:(AU;FA;0x2;;;BA)"),
        (15, f"O:{BOB.sid}G:BGD:(A;;0x2;;;BA)S:(AU;FA;0x2;;;BA)"),
    ],
)
def test_every_part_of_a_descriptor_is_replaced_alone(
    qm: RunningQueueManager, client: Client, parts: int, expected: str
) -> None:
    qm.create(security=parse_sddl("O:BAG:BUD:(A;;0xf003f;;;WD)S:(AU;SA;0x4;;;WD)").encode())
    change = parse_sddl(f"O:{BOB.sid}G:BGD:(A;;0x2;;;BA)S:(AU;FA;0x2;;;BA)").encode()
    status = client.status(
        "R_QMSetObjectSecurityInternal",
        pObjectFormat=object_of(ORDERS),
        SecurityInformation=parts,
        SDSize=len(change),
        pSecurityDescriptor=change,
    )
    assert status == "MQ_OK"
    qm.restart()
    assert format_sddl(SecurityDescriptor.decode(qm.find().security)) == expected


@pytest.mark.conformance("MQMP-registry-3")
def test_builds_of_five_digits_are_told_whole(qm: RunningQueueManager) -> None:
    qm.restart(replace(SETTINGS, queue_manager_version="10.0.20348.1"))
    client = Client(served_clients(qm).connect(ADMINISTRATOR, transport=NCALRPC))
    response = client.caller.call("R_QMQueryQMRegistryInternal", dwQueryType=3)
    assert response.lplpMQISServer == "10.0.20348"
