"""Every property of a message through an object, against what RemoteRead tells of the message."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqacvalues import (
    MQMSGACKNOWLEDGEMENT,
    MQMSGCLASS,
    MQMSGDELIVERY,
    MQMSGJOURNAL,
    MQMSGPRIVLEVEL,
    MQMSGSENDERIDTYPE,
    MQMSGTRACE,
)
from rpcqm.codec.types.mqvalues import VARENUM
from tests.support.dcom.com_objects import Objects, octets
from tests.support.dcom.dcom_client import ComError, Reference

CONNECTOR = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
LINEAGE = UUID("00112233-4455-6677-8899-aabbccddeeff")
CORRELATION = MessageIdentifier(LINEAGE, 77).encode()


@dataclass(frozen=True)
class Property:
    """A property: what is put, what it is before, and what its receivers see."""

    name: str
    get: int
    put: int
    value: object
    initial: object
    attributes: dict[str, object]
    connector: bool = False

    @property
    def points(self) -> list[str]:
        return [f"IMSMQMessage4-{number}-{self.name}" for number in (self.get, self.put) if number]


BYTES = octets(b"")
PROPERTIES = [
    Property("Delivery", 13, 14, 1, 0, {"delivery_guarantee": 1}),
    Property("Trace", 15, 16, 1, 0, {"tracing_requested": True}),
    Property("Priority", 17, 18, 5, 3, {"priority": 5}),
    Property(
        "Journal",
        19,
        20,
        3,
        0,
        {"positive_journaling_requested": True, "negative_journaling_requested": True},
    ),
    Property("AppSpecific", 23, 24, -2, 0, {"application_tag": 0xFFFFFFFE}),
    Property("Ack", 34, 35, 5, 0, {"acknowledgements_requested": 5}),
    Property("Label", 36, 37, "höst 𝄞", "", {"label": "höst 𝄞"}),
    Property("MaxTimeToReachQueue", 38, 39, 777, -1, {"time_to_reach_queue": 777}),
    Property(
        "MaxTimeToReceive",
        40,
        41,
        888,
        -1,
        {"time_to_be_received": 888, "time_to_reach_queue": 888},
    ),
    Property("HashAlgorithm", 42, 43, 0x8003, 0x8004, {"hash_algorithm": 0x8003}),
    Property("EncryptAlgorithm", 44, 45, 0x6602, 0x6801, {"encryption_algorithm": 0x6602}),
    Property("PrivLevel", 8, 9, 3, 0, {"privacy_level": 3}),
    Property(
        "CorrelationId",
        32,
        33,
        octets(CORRELATION),
        octets(bytes(20)),
        {"correlation_identifier": MessageIdentifier(LINEAGE, 77)},
    ),
    Property("Extension", 57, 58, octets(b"more"), BYTES, {"extension": b"more"}),
    Property(
        "SenderCertificate", 49, 50, octets(b"X.509"), BYTES, {"sender_certificate": b"X.509"}
    ),
    Property("SenderIdType", 52, 53, 0, 1, {"sender_identifier_type": 0, "sender_identifier": b""}),
    Property(
        "ConnectorTypeGuid",
        59,
        60,
        CONNECTOR,
        "{00000000-0000-0000-0000-000000000000}",
        {"connector_type_identifier": UUID(CONNECTOR)},
    ),
    Property("Signature", 64, 65, octets(b"signed"), BYTES, {"signature": b"signed"}, True),
    Property("AuthenticationProviderType", 66, 67, 12, 1, {}, True),
    Property(
        "AuthenticationProviderName",
        68,
        69,
        "Microsoft Enhanced Cryptographic Provider, v1.0",
        "Microsoft Base Cryptographic Provider, v1.0",
        {},
        True,
    ),
    Property("MsgClass", 71, 72, 0x4000, 0, {"message_class": 0x4000}, True),
]


def marked(each: Property) -> object:
    points = [f"MQAC-{point}" for point in each.points]
    return pytest.param(each, id=each.name, marks=pytest.mark.conformance(*points))


def prepared(objects: Objects, each: Property) -> Reference:
    """A message with the property set, and a ConnectorTypeGuid where it needs one."""
    message = objects.message()
    if each.connector:
        objects.put(message, "ConnectorTypeGuid", CONNECTOR)
    assert objects.get(message, each.name) == each.initial
    objects.put(message, each.name, each.value)
    return message


@pytest.mark.parametrize("each", [marked(each) for each in PROPERTIES])
def test_a_property_is_kept_and_its_receivers_see_it(objects: Objects, each: Property) -> None:
    message, target = prepared(objects, each), objects.destination(objects.private_name())
    assert objects.get(message, each.name) == each.value
    objects.send(message, target)
    objects.send(message, target)
    read = objects.read()
    assert {name: getattr(read, name) for name in each.attributes} == each.attributes
    received = objects.received()
    if each.attributes:
        assert objects.get(received, each.name) == each.value


BODIES = [
    Variant(VARENUM.VT_I1, -2),
    Variant(VARENUM.VT_UI1, 200),
    Variant(VARENUM.VT_I2, -2),
    Variant(VARENUM.VT_UI2, 0xFFFE),
    Variant(VARENUM.VT_I4, -2),
    Variant(VARENUM.VT_UI4, 0xFFFFFFFF),
    Variant(VARENUM.VT_R4, 0.5),
    Variant(VARENUM.VT_R8, 0.1),
    Variant(VARENUM.VT_CY, Decimal("-1.5")),
    Variant(VARENUM.VT_DATE, 45_000.25),
    Variant(VARENUM.VT_BOOL, True),
    Variant(VARENUM.VT_BSTR, "höst 𝄞"),
    octets(bytes(range(256))),
]
OCTETS = [
    b"\xfe",
    b"\xc8",
    b"\xfe\xff",
    b"\xfe\xff",
    b"\xfe\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\0\0\0?",
    b"\x9a\x99\x99\x99\x99\x99\xb9?",
    (-15000).to_bytes(8, "little", signed=True),
    b"\0\0\0\0\x08\xf9\xe5@",
    b"\xff\xff",
    "höst 𝄞".encode("utf-16-le"),
    bytes(range(256)),
]


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-26-BodyLength",
    "MQAC-IMSMQMessage4-27-Body",
    "MQAC-IMSMQMessage4-28-Body",
)
@pytest.mark.parametrize(
    ("body", "plain"),
    list(zip(BODIES, OCTETS, strict=True)),
    ids=[f"{each.vt:#x}" for each in BODIES],
)
def test_a_body_of_each_type_is_the_same_for_every_receiver(
    objects: Objects, body: Variant, plain: bytes
) -> None:
    message, target = objects.message(), objects.destination()
    assert objects.get(message, "Body") == EMPTY
    objects.put(message, "Body", body)
    assert objects.get(message, "Body") == body
    assert objects.get(message, "BodyLength") == len(plain)
    objects.send(message, target)
    objects.send(message, target)
    read = objects.read()
    assert (read.body_type, read.body) == (body.vt, plain)
    received = objects.received()
    assert objects.get(received, "Body") == body
    assert objects.get(received, "BodyLength") == len(plain)


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("PrivLevel", 2, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("AuthLevel", 3, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("Delivery", 2, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("Trace", -1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("Priority", 8, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("Priority", -1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("Journal", 4, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("Ack", 16, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("HashAlgorithm", 1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("MsgClass", 3, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("SenderIdType", 2, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("ConnectorTypeGuid", CONNECTOR.strip("{}"), HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("Label", 250 * "x", HResult.MQ_ERROR_LABEL_TOO_LONG),
        ("Label", 125 * "𝄞", HResult.MQ_ERROR_LABEL_TOO_LONG),
        ("CorrelationId", octets(b"short"), HResult.MQ_ERROR_ILLEGAL_PROPERTY_SIZE),
        ("Extension", Variant(VARENUM.VT_I4, 1), HResult.E_INVALIDARG),
        ("Body", EMPTY, HResult.E_INVALIDARG),
        ("Body", Variant(VARENUM.VT_I8, 1), HResult.E_INVALIDARG),
        ("Body", Variant(VARENUM.VT_DISPATCH, None), HResult.E_NOINTERFACE),
    ],
)
@pytest.mark.conformance("MQAC-IMSMQMessage4-37-Label")
@pytest.mark.conformance("MQAC-IMSMQMessage4-28-Body")
def test_a_wrong_value_is_refused_and_the_old_one_stays(
    objects: Objects, name: str, value: object, status: HResult
) -> None:
    message = objects.message()
    before = objects.get(message, name)
    with pytest.raises(ComError) as refused:
        objects.put(message, name, value)
    assert refused.value.status == status
    assert objects.get(message, name) == before


@pytest.mark.parametrize(
    ("name", "values", "wrong"),
    [
        pytest.param(
            name, values, wrong, id=name, marks=pytest.mark.conformance(f"MQAC-element-{element}")
        )
        for name, element, values, wrong in [
            ("MsgClass", "MQMSGCLASS", tuple(MQMSGCLASS), 0x00FF),
            ("Delivery", "MQMSGDELIVERY", tuple(MQMSGDELIVERY), 2),
            ("Ack", "MQMSGACKNOWLEDGEMENT", tuple(MQMSGACKNOWLEDGEMENT), 0x10),
            ("Journal", "MQMSGJOURNAL", tuple(MQMSGJOURNAL), 8),
            ("Trace", "MQMSGTRACE", tuple(MQMSGTRACE), 2),
            ("SenderIdType", "MQMSGSENDERIDTYPE", tuple(MQMSGSENDERIDTYPE), 3),
            ("PrivLevel", "MQMSGPRIVLEVEL", tuple(MQMSGPRIVLEVEL), 4),
            ("HashAlgorithm", "MQCALG", (0x8001, 0x8002, 0x8003, 0x8004), 0x8005),
        ]
    ],
)
def test_every_value_of_an_enumeration_is_taken_and_no_other(
    objects: Objects, name: str, values: tuple[int, ...], wrong: int
) -> None:
    message = objects.message()
    for value in values:
        objects.put(message, name, int(value))
        assert objects.get(message, name) == value
    with pytest.raises(ComError) as refused:
        objects.put(message, name, wrong)
    assert refused.value.status is HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
