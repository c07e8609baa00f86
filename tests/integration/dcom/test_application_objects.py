"""MSMQApplication, MSMQQuery, MSMQQueueInfos and MSMQCollection through the door.

What they tell is compared with what qmmgmt and the directory tell ([MC-MQAC] 3.2, 3.13 to 3.15).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_der_x509_certificate

from rpcqm.base.errors import HResult
from rpcqm.binary.own_keys import create_key, load_key
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import ManagementMachineProperty
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from tests.support.certificates import certificate_of
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    Objects,
    number,
    octets,
    served_objects,
    text,
)
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference
from tests.support.qm.directories import (
    DIRECTORY,
    OWN_QUEUE,
    ROUTER,
    THEIR_QUEUE,
    WORKSTATION,
    write_directory,
)

P = ManagementMachineProperty
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\far"
OWN, THEIRS = f"PUBLIC={OWN_QUEUE}", f"PUBLIC={THEIR_QUEUE}"
MULTICAST = "234.1.1.1:8001"
_FIRST_ACCOUNT = "S-1-5-21-1-2-3-1001"


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    place = tmp_path_factory.mktemp("directory")
    directory: Path = write_directory(place, DIRECTORY)
    create_key(place / "key.pem")
    certificate = load_der_x509_certificate(certificate_of(load_key(str(place / "key.pem"))))
    (place / "key.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    configuration = (
        f"name = 'WORKSTATION'\ndirectory_file = '{directory}'\n{ENABLED}"
        f"[binary]\nsigning_key = '{place}/key.pem'\nsigning_certificate = '{place}/key.crt'\n"
    )
    with served_objects(configuration) as served:
        listed = served.machine.run("user", "list").stdout
        (line,) = [line for line in listed.splitlines() if "alice" in line]
        sid = next(word for word in line.split() if word.startswith("S-1-5-21"))
        write_directory(directory.parent, DIRECTORY.replace(_FIRST_ACCOUNT, sid))
        yield served


@pytest.fixture
def boss(objects: Objects) -> Iterator[Objects]:
    with DcomClient(objects.machine.endpoint("epm"), ADMINISTRATOR) as com:
        yield Objects(objects.machine, com, objects.client)


def application(objects: Objects, interface: str = "IMSMQApplication3") -> Reference:
    return objects.create(coclasses.MSMQ_APPLICATION, interface)


def point(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(*(f"MQAC-{name}" for name in names))


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


def told(objects: Objects, identifier: ManagementMachineProperty) -> object:
    """What qmmgmt tells of the machine."""
    (value,) = objects.client.run(objects.client.management._information(None, [identifier]))
    return value


# MSMQApplication


@point(
    "IMSMQApplication-7-MachineIdOfMachineName",
    "IMSMQApplication2-9-MachineNameOfMachineId",
    "coclass-MSMQApplication",
)
def test_a_machine_is_found_by_its_name_and_by_its_identifier(objects: Objects) -> None:
    made = application(objects)

    def identifier_of(name: str | None) -> object:
        return objects.com.call(made, "MachineIdOfMachineName", name)

    def name_of(identifier: str) -> object:
        return objects.com.call(made, "MachineNameOfMachineId", identifier)

    assert identifier_of(None) == str(WORKSTATION)
    assert identifier_of("router") == str(ROUTER) == identifier_of("router.example.org")
    assert name_of(str(ROUTER)) == "ROUTER" == name_of(f"{{{ROUTER}}}".upper())
    assert name_of(str(WORKSTATION)) == "WORKSTATION"
    unknown = HResult.MQ_ERROR_MACHINE_NOT_FOUND
    assert refusal(objects, made, "MachineIdOfMachineName", "nobody") is unknown
    assert refusal(objects, made, "MachineNameOfMachineId", str(OWN_QUEUE)) is unknown
    odd = (f"urn:uuid:{ROUTER}", ROUTER.hex, f"{{{ROUTER}", str(ROUTER).replace("22", "2_", 1))
    for wrong in ("x", *odd):
        assert refusal(objects, made, "MachineNameOfMachineId", wrong) is HResult.E_INVALIDARG


@point(
    "IMSMQApplication2-10-MSMQVersionMajor",
    "IMSMQApplication2-11-MSMQVersionMinor",
    "IMSMQApplication2-12-MSMQVersionBuild",
    "IMSMQApplication2-13-IsDsEnabled",
)
def test_the_version_is_that_of_the_interfaces_and_the_build_ours(objects: Objects) -> None:
    """Scripts that want subqueues and their like ask for 3 or more (G418)."""
    made = application(objects)
    names = ("MSMQVersionMajor", "MSMQVersionMinor", "MSMQVersionBuild")
    shown = objects.machine.run("--version").stdout.split()[-1]
    major, minor, patch = (int(part) for part in shown.split(".")[:3])
    build = 10_000 * major + 100 * minor + patch
    assert [objects.get(made, name) for name in names] == [4, 1, build]
    assert objects.get(made, "IsDsEnabled") is True
    objects.put(made, "Machine", "ROUTER")
    for name in (*names, "IsDsEnabled"):
        assert refusal(objects, made, f"get_{name}") is HResult.MQ_ERROR_INVALID_PARAMETER


@point("IMSMQApplication2-14-Properties")
def test_what_is_only_a_name_says_so(objects: Objects) -> None:
    assert refusal(objects, application(objects), "get_Properties") is HResult.E_NOTIMPL


@point("IMSMQApplication2-8-RegisterCertificate")
def test_a_user_registers_certificates_of_his_own(objects: Objects, boss: Objects) -> None:
    made, register = application(objects), "RegisterCertificate"
    certificate = octets(certificate_of(ec.generate_private_key(ec.SECP256R1())))
    objects.com.call(made, register, None, certificate)
    objects.com.call(made, register, number(1), certificate)
    if_new = number(2)
    wrong = HResult.MQ_ERROR_INVALID_PARAMETER
    assert refusal(objects, made, register, if_new, certificate) is wrong
    broken = octets(b"no certificate")
    assert refusal(objects, made, register, None, broken) is HResult.MQ_ERROR_INVALID_CERTIFICATE
    unknown = refusal(boss, application(boss), register, None, certificate)
    assert unknown is HResult.MQ_ERROR_ILLEGAL_USER
    message = objects.message()
    objects.put(message, "AuthLevel", 4)
    missing = refusal(objects, message, "Send", objects.destination(), None)
    assert missing is HResult.MQ_ERROR_NO_INTERNAL_USER_CERT
    objects.com.call(made, register, None, None)
    objects.send(message, objects.destination())
    again = objects.com.response(made, register, if_new, None)
    assert again.result == HResult.MQ_INFORMATION_INTERNAL_USER_CERT_EXIST
    objects.put(made, "Machine", "WORKSTATION")
    assert refusal(objects, made, register, None, certificate) is HResult.E_NOTIMPL


@point(
    "IMSMQApplication3-15-ActiveQueues",
    "IMSMQApplication3-16-PrivateQueues",
    "IMSMQApplication3-19-BytesInAllQueues",
)
def test_an_administrator_is_told_what_qmmgmt_tells(objects: Objects, boss: Objects) -> None:
    objects.send(objects.message(), objects.destination(ELSEWHERE))
    objects.open(QueueAccessType.PEEK_ACCESS)
    made = application(boss)
    texts = VARENUM.VT_ARRAY | VARENUM.VT_BSTR
    for operation, identifier in (
        ("ActiveQueues", P.PROPID_MGMT_MSMQ_ACTIVEQUEUES),
        ("get_PrivateQueues", P.PROPID_MGMT_MSMQ_PRIVATEQ),
    ):
        listed = boss.com.call(made, operation)
        assert listed.vt == texts
        assert isinstance(listed.value, SafeArray)
        names = told(objects, identifier)
        assert isinstance(names, tuple)
        assert sorted(map(str, listed.value.values)) == sorted(names) != []
    size = told(objects, P.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES)
    assert boss.get(made, "BytesInAllQueues") == Variant(VARENUM.VT_I8, size)
    assert size


@point("IMSMQApplication3-17-DirectoryServiceServer")
def test_a_directory_of_a_file_has_no_server(boss: Objects) -> None:
    made = application(boss)
    assert told(boss, P.PROPID_MGMT_MSMQ_DSSERVER) is None
    assert refusal(boss, made, "get_DirectoryServiceServer") is HResult.MQ_ERROR_NO_DS


@point(
    "IMSMQApplication3-18-IsConnected",
    "IMSMQApplication3-22-Connect",
    "IMSMQApplication3-23-Disconnect",
    "IMSMQApplication3-24-Tidy",
)
def test_an_administrator_takes_the_machine_off_the_network(boss: Objects) -> None:
    made = application(boss)
    assert boss.get(made, "IsConnected") is True
    boss.com.call(made, "Disconnect")
    assert boss.get(made, "IsConnected") is False
    assert told(boss, P.PROPID_MGMT_MSMQ_CONNECTED) == "DISCONNECTED"
    boss.com.call(made, "Connect")
    assert boss.get(made, "IsConnected") is True
    bodies = boss.bodies()
    boss.com.call(made, "Tidy")
    assert boss.bodies() == bodies


@point(
    "IMSMQApplication3-18-IsConnected",
    "IMSMQApplication3-20-Machine",
    "IMSMQApplication3-21-Machine",
)
def test_another_machine_is_not_asked_without_an_account(boss: Objects) -> None:
    made = application(boss)
    assert boss.get(made, "Machine") == "WORKSTATION"
    boss.put(made, "Machine", "localhost")
    assert boss.get(made, "IsConnected") is True
    boss.put(made, "Machine", "ROUTER")
    assert boss.get(made, "Machine") == "ROUTER"
    assert refusal(boss, made, "get_IsConnected") is HResult.MQ_ERROR_ACCESS_DENIED


_OF_ADMINISTRATORS = {
    "ActiveQueues": 15,
    "PrivateQueues": 16,
    "DirectoryServiceServer": 17,
    "IsConnected": 18,
    "BytesInAllQueues": 19,
    "Connect": 22,
    "Disconnect": 23,
    "Tidy": 24,
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=point(f"IMSMQApplication3-{opnum}-{name}"))
        for name, opnum in _OF_ADMINISTRATORS.items()
    ],
)
def test_others_neither_ask_nor_order(objects: Objects, name: str) -> None:
    is_property = name.startswith(("Private", "Directory", "Is", "Bytes"))
    operation = f"get_{name}" if is_property else name
    status = refusal(objects, application(objects), operation)
    assert status is HResult.MQ_ERROR_ACCESS_DENIED


# MSMQQuery and MSMQQueueInfos

_PARAMETERS = (
    "QueueGuid",
    "ServiceTypeGuid",
    "Label",
    "CreateTime",
    "ModifyTime",
    "RelServiceType",
    "RelLabel",
    "RelCreateTime",
    "RelModifyTime",
    "MulticastAddress",
    "RelMulticastAddress",
)


def query(objects: Objects, interface: str = "IMSMQQuery4") -> Reference:
    return objects.create(coclasses.MSMQ_QUERY, interface)


def names_in(objects: Objects, infos: Reference) -> list[object]:
    names = []
    while (info := objects.com.call(infos, "Next")) is not None:
        names.append(objects.get(info, "FormatName"))
    return names


def found(objects: Objects, **given: Variant) -> list[object]:
    """What LookupQueue finds, and LookupQueue_v2 where it can be asked the same."""
    arguments = [given.get(name) for name in _PARAMETERS]
    names = names_in(objects, objects.com.call(query(objects), "LookupQueue", *arguments))
    if not {"MulticastAddress", "RelMulticastAddress"} & given.keys():
        older = objects.com.call(query(objects), "LookupQueue_v2", *arguments[:9])
        assert names_in(objects, older) == names
    return names


@point(
    "IMSMQQuery4-7-LookupQueue_v2",
    "IMSMQQuery4-9-LookupQueue",
    "IMSMQQueueInfos4-8-Next",
    "element-RELOPS",
    "coclass-MSMQQuery",
)
def test_a_query_finds_the_public_queues_of_the_directory(objects: Objects) -> None:
    assert found(objects) == [OWN, THEIRS]
    assert found(objects, QueueGuid=text(f"{{{THEIR_QUEUE}}}")) == [THEIRS]
    null = text(f"{{{'0' * 8}-0000-0000-0000-{'0' * 12}}}")
    assert found(objects, ServiceTypeGuid=null) == [OWN, THEIRS]
    assert found(objects, ServiceTypeGuid=null, RelServiceType=number(2)) == []
    for relation, expected in (
        (0, [OWN, THEIRS]),
        (1, [OWN]),
        (2, [THEIRS]),
        (3, [THEIRS]),
        (4, []),
        (5, [OWN, THEIRS]),
        (6, [OWN]),
    ):
        assert found(objects, Label=text("Reports"), RelLabel=number(relation)) == expected
    never = Variant(VARENUM.VT_DATE, 25_569.0)
    assert found(objects, CreateTime=never, ModifyTime=never) == [THEIRS]
    assert found(objects, CreateTime=never, RelCreateTime=number(4)) == [OWN]
    assert found(objects, ModifyTime=never, RelModifyTime=number(3)) == []


@point("IMSMQQuery4-9-LookupQueue", "IMSMQQueueInfos4-8-Next")
def test_a_query_looks_at_addresses_of_multicast(objects: Objects, boss: Objects) -> None:
    assert found(objects, MulticastAddress=text("")) == [OWN, THEIRS]
    info = boss.create(coclasses.MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
    boss.put(info, "FormatName", OWN)
    boss.com.call(info, "Refresh")
    boss.put(info, "MulticastAddress", MULTICAST)
    boss.com.call(info, "Update")
    assert found(objects, MulticastAddress=text(MULTICAST)) == [OWN]
    assert found(objects, MulticastAddress=text("")) == [THEIRS]
    without = found(objects, MulticastAddress=text(MULTICAST), RelMulticastAddress=number(2))
    assert without == [THEIRS]
    boss.put(info, "MulticastAddress", "")
    boss.com.call(info, "Update")


@point("IMSMQQuery4-7-LookupQueue_v2", "IMSMQQuery4-9-LookupQueue", "element-RELOPS")
def test_a_query_that_makes_no_sense_is_refused(objects: Objects) -> None:
    for position, wrong in ((0, text("x")), (6, number(7)), (3, text("x"))):
        arguments: list[Variant | None] = [None] * 11
        arguments[2] = text("Reports")
        arguments[position] = wrong
        status = refusal(objects, query(objects), "LookupQueue", *arguments)
        assert status is HResult.E_INVALIDARG


@point("IMSMQQueueInfos4-7-Reset", "IMSMQQueueInfos4-8-Next", "coclass-MSMQQueueInfos")
def test_infos_begin_again_and_are_blank_where_a_client_makes_them(objects: Objects) -> None:
    infos = objects.com.call(query(objects), "LookupQueue", *[None] * 11)
    objects.com.call(infos, "Next")
    objects.com.call(infos, "Reset")
    assert names_in(objects, infos) == [OWN, THEIRS]
    assert objects.com.call(infos, "Next") is None
    blank = objects.create(coclasses.MSMQ_QUEUE_INFOS, "IMSMQQueueInfos4")
    for operation in ("Next", "Reset"):
        status = refusal(objects, blank, operation)
        assert status is HResult.MQ_ERROR_UNINITIALIZED_OBJECT


@point("IMSMQQueueInfos4-8-Next")
def test_what_a_query_finds_is_described(objects: Objects, boss: Objects) -> None:
    infos = boss.com.call(query(boss), "LookupQueue", *[None] * 11)
    own, theirs = boss.com.call(infos, "Next"), boss.com.call(infos, "Next")
    assert boss.get(own, "PathName") == r"WORKSTATION\reports"
    told = objects.client.run(objects.client.queues.properties(FormatName.parse(OWN)))
    assert boss.get(own, "Label") == told.label
    assert boss.get(theirs, "IsTransactional") == 1


@pytest.mark.parametrize(
    ("clsid", "interface"),
    [
        pytest.param(coclasses.MSMQ_QUERY, "IMSMQQuery4", marks=point("IMSMQQuery4-8-Properties")),
        pytest.param(
            coclasses.MSMQ_QUEUE_INFOS,
            "IMSMQQueueInfos4",
            marks=point("IMSMQQueueInfos4-9-Properties"),
        ),
    ],
    ids=["query", "infos"],
)
def test_properties_are_only_a_name(objects: Objects, clsid: object, interface: str) -> None:
    made = objects.com.create(clsid, interface)  # type: ignore[arg-type]
    assert refusal(objects, made, "get_Properties") is HResult.E_NOTIMPL


# MSMQCollection


@point(
    "IMSMQCollection-7-Item",
    "IMSMQCollection-8-Count",
    "IMSMQCollection-9-_NewEnum",
)
def test_a_collection_has_its_elements_by_name_and_in_a_row(
    objects: Objects, boss: Objects
) -> None:
    objects.send(objects.message(), objects.destination(ELSEWHERE))
    management = boss.create(coclasses.MSMQ_MANAGEMENT, "IMSMQManagement")
    boss.com.call(management, "Init", None, None, text(ELSEWHERE))
    outgoing = boss.com.query_interface(management, "IMSMQOutgoingQueueManagement")
    collection = boss.com.query_interface(
        boss.com.call(outgoing, "EodGetSendInfo"), "IMSMQCollection"
    )
    count = boss.get(collection, "Count")
    element = boss.com.call(collection, "Item", text("EodNoReadCount"))
    assert element.value == 0
    for wrong in (text("eodnoreadcount"), text("x"), number(0)):
        status = refusal(boss, collection, "Item", wrong)
        assert status is HResult.MQ_ERROR_INVALID_PARAMETER
    unknown = boss.com.call(collection, "_NewEnum")
    enumerator = boss.com.query_interface(unknown, "IEnumVARIANT")
    response = boss.com.response(enumerator, "Next", 64)
    assert response.pCeltFetched == count == len(response.rgVar)
    assert element in response.rgVar


@point("coclass-MSMQCollection", "IMSMQCollection-8-Count")
def test_a_collection_that_a_client_makes_is_empty(objects: Objects) -> None:
    made = objects.create(coclasses.MSMQ_COLLECTION, "IMSMQCollection")
    assert objects.get(made, "Count") == 0
    assert refusal(objects, made, "Item", text("x")) is HResult.MQ_ERROR_INVALID_PARAMETER
