"""Attributes of elements and the values that a directory has for them."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.adm.directory_object import Enterprise, RoutingLink, Site
from rpcqm.adm.enums import DirectoryOperationResult, DirectoryServerType, OperatingSystemType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import DecodeError
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel
from rpcqm.directory import elements, values
from rpcqm.directory.values import Attribute, Entry

PLACE = "CN=msmq,CN=QM2,CN=Computers,DC=corp,DC=test"
GUID = UUID("6b29fc40-ca47-1067-b31d-00dd010662da")
UNSIGNED, SIGNED = st.integers(0, 0xFFFFFFFF), st.integers(-(1 << 31), (1 << 31) - 1)
FILLED = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=124)

queues = st.builds(
    Queue,
    label=FILLED,
    type=st.uuids(),
    journaling=st.booleans(),
    quota=UNSIGNED,
    journal_quota=UNSIGNED,
    authentication=st.booleans(),
    privacy_level=st.sampled_from(QueuePrivacyLevel),
    transactional=st.booleans(),
    multicast_address=FILLED,
    base_priority=SIGNED,
)
machines = st.builds(
    QueueManager,
    queue_manager_version=FILLED,
    operating_system_type=st.sampled_from(OperatingSystemType),
    queue_manager_quota=UNSIGNED,
    journal_quota=UNSIGNED,
    foreign_system=st.booleans(),
    site_identifier_list=st.lists(st.uuids()),
    routing_server=st.booleans(),
    directory_server=st.booleans(),
    supporting_server=st.booleans(),
    public_encryption_key_list=st.binary(min_size=1),
)


def entry(place: str = PLACE, **stored: bytes | list[bytes]) -> Entry:
    made = {name.lower(): v if isinstance(v, list) else [v] for name, v in stored.items()}
    return Entry(place, {"objectguid": [GUID.bytes_le], **made})


def lookup(*there: str) -> elements.Identifiers:
    return lambda name: GUID if name in there else None


def read_back(element: object, attributes: Sequence[Attribute]) -> None:
    written = values.write_values(element, attributes)
    read = values.read_values(
        Entry("", {name.lower(): value for name, value in written.items()}), attributes
    )
    for each in attributes:
        value = getattr(element, each.name)
        if value or not each.kind.several:
            assert read[each.name] == value, each.name


@given(queues)
@pytest.mark.conformance("MQDSSM-read-queue", "MQDSSM-privacy-level")
def test_queues_are_read_as_they_are_written(queue: Queue) -> None:
    read_back(queue, values.QUEUE)


@given(machines)
@pytest.mark.conformance("MQDSSM-read-qm", "MQDSSM-os-type")
def test_queue_managers_are_read_as_they_are_written(machine: QueueManager) -> None:
    read_back(machine, values.QUEUE_MANAGER)


@pytest.mark.conformance("MQDSSM-os-type", "MQDSSM-privacy-level")
def test_systems_and_levels_have_their_numbers() -> None:
    machine = QueueManager(operating_system_type=OperatingSystemType.WIN_SERVER)
    assert values.write_values(machine, values.QUEUE_MANAGER)["mSMQOSType"] == [b"1024"]
    for level, number in zip(QueuePrivacyLevel, (b"0", b"1", b"2"), strict=True):
        queue = Queue(privacy_level=level)
        assert values.write_values(queue, values.QUEUE)["mSMQPrivacyLevel"] == [number]


@pytest.mark.conformance("MQDSSM-read-queue")
def test_a_queue_has_what_its_object_says() -> None:
    stored = entry(
        f"CN=offers,{PLACE}",
        mSMQLabelEx=b"What we offer",
        mSMQQueueType=GUID.bytes_le,
        mSMQQueueQuota=b"2048",
        mSMQTransactional=b"TRUE",
        whenCreated=b"20261127144528.0Z",
    )
    queue = elements.read_queue(stored, QueueManager())
    assert (queue.label, queue.type, queue.quota) == ("What we offer", GUID, 2048)
    assert (queue.transactional, queue.create_time) == (True, 1795790728)
    assert "label" not in queue.unsaid


@pytest.mark.conformance("MQDSSM-event-write")
def test_an_empty_value_is_written_as_no_value() -> None:
    written = values.write_values(Queue(label="", multicast_address=None), values.QUEUE)
    assert written["mSMQLabelEx"] == written["MSMQ-MulticastAddress"] == []
    assert written["mSMQQueueQuota"] == [b"-1"]
    assert values.read_quota(b"-1") == 0xFFFFFFFF
    assert values.write_values(Queue(label="x"), values.QUEUE, ["label"]) == {"mSMQLabelEx": [b"x"]}


@pytest.mark.conformance("MQDSSM-values-queue", "MQDSSM-values-pathname")
def test_a_queue_without_attributes_has_defaults() -> None:
    machine = elements.read_queue_manager(entry(), lookup())
    elements.add_computer(machine, entry(dNSHostName=b"qm2.corp.test"))
    queue = elements.read_queue(entry(f"CN=Offers,{PLACE}"), machine)
    assert (queue.identifier, queue.pathname) == (GUID, "qm2\\offers")
    assert queue.qualified_pathname == "qm2.corp.test\\offers"
    assert queue.directory_path == f"LDAP://CN=Offers,{PLACE}"
    assert queue.quota == queue.journal_quota == 0xFFFFFFFF
    assert queue.privacy_level is QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL
    assert {"security", "quota", "label"} <= queue.unsaid


@pytest.mark.conformance("MQDSSM-values-qm", "MQDSSM-values-clustered", "MQDSSM-service-type")
def test_a_queue_manager_says_what_it_serves_as() -> None:
    gone = "CN=msmq,CN=GONE,DC=corp,DC=test"
    stored = entry(
        mSMQDsServices=b"TRUE",
        mSMQServiceType=b"21",
        mSMQOutRoutingServers=[PLACE.encode(), gone.encode()],
    )
    machine = elements.read_queue_manager(stored, lookup(PLACE))
    assert machine.computer_name == "QM2"
    assert machine.out_routing_server_identifier_list == [GUID]
    assert machine.directory_server_type is DirectoryServerType.PRIMARY_SITE_CONTROLLER
    assert machine.remote_access_server
    assert machine.queue_manager_quota == 0x100000
    elements.add_computer(machine, entry(servicePrincipalName=b"MSClusterVirtualServer/x"))
    assert machine.clustered
    assert machine.qualified_computer_name == "QM2"
    assert values.service_type(True, True, machine.directory_server_type) == 21
    assert values.server_type(1) is DirectoryServerType.STANDALONE


@pytest.mark.conformance("MQDSSM-values-enterprise")
def test_the_enterprise_has_the_name_of_the_root_domain() -> None:
    made = elements.read_enterprise(entry(mSMQVersion=b"200"), "corp.test")
    assert isinstance(made, Enterprise)
    assert (made.name, made.default_time_to_live, made.old_directory) == (
        "corp.test",
        345600,
        False,
    )
    assert made.non_ldap_capable_queue_manager_notification
    assert not made.weakened_security
    assert "default_time_to_live" in made.unsaid


@pytest.mark.conformance("MQDSSM-values-site")
def test_a_site_that_msmq_never_touched_has_defaults() -> None:
    made = elements.read_site(entry("CN=Berlin,CN=Sites,CN=x", cn=b"Berlin"))
    assert isinstance(made, Site)
    assert (made.intra_site_replication_interval, made.inter_site_replication_interval) == (2, 10)
    assert not made.migrated_from_msmq10


@pytest.mark.conformance("MQDSSM-values-link")
def test_a_link_whose_site_is_gone_is_refused() -> None:
    stored = entry(mSMQCost=b"7", mSMQSite1=b"CN=a", mSMQSite2=b"CN=b")
    made = elements.read_link(stored, lookup("CN=a", "CN=b"), lookup())
    assert isinstance(made, RoutingLink)
    assert (made.actual_cost, made.site1_identifier) == (7, GUID)
    with pytest.raises(DecodeError, match="not there"):
        elements.read_link(stored, lookup("CN=a"), lookup())


@pytest.mark.conformance("MQDSSM-values-user")
def test_a_user_without_a_sid_is_refused() -> None:
    assert elements.read_user(entry(objectSid=b"\1\0")).security_identifier == b"\1\0"
    with pytest.raises(DecodeError, match="no SID"):
        elements.read_user(entry())


@pytest.mark.conformance("MQDSSM-alias")
def test_an_alias_stands_for_a_format_name() -> None:
    stored = Entry(
        "CN=shop,DC=x",
        {"objectguid": [GUID.bytes_le], "msmq-recipient-formatname": [b"DIRECT=OS:a\\b"]},
    )
    made = elements.read_alias(stored)
    assert (made.name, made.format_name) == ("shop", "DIRECT=OS:a\\b")
    with pytest.raises(DecodeError, match="no format name"):
        elements.read_alias(entry())


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("mSMQQueueType", b"short"),
        ("mSMQJournal", b"1"),
        ("mSMQQueueQuota", b"4294967296"),
        ("mSMQQueueQuota", b"many"),
        ("mSMQPrivacyLevel", b"3"),
        ("mSMQLabelEx", b"\xff"),
        ("whenCreated", b"yesterday"),
    ],
)
def test_a_wrong_value_is_refused_with_its_attribute(attribute: str, value: bytes) -> None:
    with pytest.raises(DecodeError, match=attribute):
        elements.read_queue(entry(f"CN=q,{PLACE}", **{attribute: value}), QueueManager())


def test_an_object_without_identifier_is_refused() -> None:
    with pytest.raises(DecodeError, match="no identifier"):
        elements.read_site(Entry("CN=x", {"cn": [b"x"]}))


def test_times_are_seconds() -> None:
    assert values.read_time(b"20261127144528.0Z") == 1795790728


@pytest.mark.conformance("MQDSSM-result-mapping")
@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0, "SUCCESS"),
        (32, "OBJECT_NOT_FOUND"),
        (16, "ATTRIBUTE_NOT_FOUND"),
        (1, "GENERIC_ERROR"),
        (68, "OBJECT_ALREADY_EXISTS"),
        (51, "DIRECTORY_NOT_CONNECTED"),
    ],
)
def test_results_of_ldap_are_outcomes(code: int, name: str) -> None:
    assert values.result_of(code) is DirectoryOperationResult[name]


def test_values_of_filters_are_escaped_whole() -> None:
    assert values.equals_filter("objectSid", b"*)\0") == "(objectSid=\\2a\\29\\00)"
    assert values.guid_base(GUID) == f"<GUID={GUID}>"
