"""What one caller makes objects hold: texts have their longest, and all together has a bound."""

from collections.abc import Iterator

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.idl.tree import InterfacePointer, OperationDeclaration, Parameter, WireMarshal
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.dcom.object_interfaces import object_interfaces
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    NO,
    QUEUE,
    YES,
    Objects,
    number,
    octets,
    served_objects,
    text,
)
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference

MOST = 1 << 13
"""Octets that one caller may hold in these tests."""
ENOUGH = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
CLASSES = {
    "IMSMQQueueInfo4": clsids.MSMQ_QUEUE_INFO,
    "IMSMQMessage4": clsids.MSMQ_MESSAGE,
    "IMSMQDestination": clsids.MSMQ_DESTINATION,
    "IMSMQPrivateDestination": clsids.MSMQ_DESTINATION,
    "IMSMQApplication3": clsids.MSMQ_APPLICATION,
}
"""The newest interfaces with methods that put something; older ones are served by the same."""
LONGEST = {
    ("IMSMQQueueInfo4", "Label"): (124, HResult.MQ_ERROR_LABEL_TOO_LONG),
    ("IMSMQQueueInfo4", "PathName"): (422, HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME),
    ("IMSMQQueueInfo4", "FormatName"): (65_535, HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
    ("IMSMQQueueInfo4", "ServiceTypeGuid"): (38, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    ("IMSMQQueueInfo4", "MulticastAddress"): (21, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    ("IMSMQDestination", "FormatName"): (65_535, HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
    ("IMSMQMessage4", "Label"): (249, HResult.MQ_ERROR_LABEL_TOO_LONG),
    ("IMSMQApplication3", "Machine"): (256, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
}
"""Characters of texts that are kept as they are put, and the code for one more."""


def puts() -> Iterator[tuple[str, str]]:
    """Every method of the IDL by which a client puts a text, a VARIANT or an object."""
    for interface in object_interfaces().values():
        for operation in interface.load().operations:
            if operation is not None and is_put(operation.declaration):
                yield interface.name, operation.name


def is_put(declared: OperationDeclaration) -> bool:
    return declared.name.startswith("put") and any(map(holds, declared.parameters))


def holds(parameter: Parameter) -> bool:
    kept = InterfacePointer | WireMarshal
    inner = getattr(parameter.type, "to", parameter.type)
    return parameter.in_ and (isinstance(parameter.type, kept) or isinstance(inner, kept))


PUTS = sorted(puts())
NEWEST = [each for each in PUTS if each[0] in CLASSES]


@pytest.fixture(scope="module")
def objects() -> Iterator[Objects]:
    bounds = f"true\nobjects_per_caller = 4000\noctets_per_caller = {MOST}"
    with served_objects(ENABLED.replace("true", bounds, 1)) as made:
        yield made


def kind_of(interface: str, operation: str) -> str:
    """What a method puts: BSTR, VARIANT, or an object."""
    loaded = object_interfaces()[interface].load()
    (found,) = (p for p in loaded.operation(operation).declaration.parameters if holds(p))
    inner = getattr(found.type, "to", found.type)
    made = found.type if isinstance(found.type, InterfacePointer | WireMarshal) else inner
    return made.name if isinstance(made, WireMarshal) else "object"


def values(kind: str, length: int) -> Iterator[object]:
    """What might be kept, of at least that many octets."""
    if kind == "BSTR":
        yield "x" * length
    elif kind == "VARIANT":
        yield text("x" * length)
        yield octets(bytes(length))
        several: list[object] = [number(1)] * (length // 64)
        yield Variant(VARENUM.VT_ARRAY | VARENUM.VT_VARIANT, SafeArray(VARENUM.VT_VARIANT, several))


def held(objects: Objects, interface: str, operation: str, value: object) -> int:
    """How many objects take a value before the caller holds too much; 0 if none takes it.

    Everything is released again.
    """
    kept: list[Reference] = []
    status: object = None
    while status is None and len(kept) < 1_000:
        kept.append(objects.create(CLASSES[interface], interface))
        try:
            objects.com.call(kept[-1], operation, value)
        except ComError as error:
            status = error.status
    for each in kept:
        objects.com.release(each)
    count = len(kept) - (status is not None)
    assert count == 0 or status is ENOUGH, (status, count)
    return count


def test_every_put_is_one_of_a_class_that_is_tried() -> None:
    """Older interfaces have the methods of the newest; those of clients' events put nothing."""
    newest = {operation.replace("_v1", "").replace("_v2", "") for _, operation in NEWEST}
    others = {operation for _, operation in PUTS} - newest
    assert {each.replace("_v1", "").replace("_v2", "") for each in others} <= newest


@pytest.mark.bound("dcom.octets_per_caller")
@pytest.mark.parametrize(("interface", "operation"), NEWEST, ids=[".".join(e) for e in NEWEST])
def test_no_put_makes_a_caller_hold_more_than_its_bound(
    objects: Objects, interface: str, operation: str
) -> None:
    kind = kind_of(interface, operation)
    taken = (
        (count, length)
        for length in (1_900_000, 40_000, 4_000, 400, 120, 38, 21)
        for value in values(kind, length)
        if (count := held(objects, interface, operation, value))
    )
    count, length = next(taken, (0, 0))
    assert count * length <= MOST, (length, count)


@pytest.mark.bound("dcom.longest_format_name")
@pytest.mark.parametrize(("interface", "name"), LONGEST, ids=[".".join(e) for e in LONGEST])
def test_a_text_is_put_up_to_its_longest(objects: Objects, interface: str, name: str) -> None:
    most, code = LONGEST[interface, name]
    made = objects.create(CLASSES[interface], interface)
    if most < 1_000:
        objects.put(made, name, "x" * most)
        assert objects.com.call(made, f"get_{name}") == "x" * most if name == "Machine" else True
    with pytest.raises(ComError) as refused:
        objects.put(made, name, "x" * (most + 1))
    assert refused.value.status is code
    objects.com.release(made)


def test_names_that_messages_hold_count(objects: Objects) -> None:
    """An object that names many queues gives its names to messages, which outlive it."""
    names = ",".join([r"DIRECT=OS:a\q"] * 10)
    kept, status = [], None
    named = objects.destination(names, is_open=False)
    try:
        for _ in range(200):
            message = objects.message()
            kept.append(message)
            objects.com.call(message, "putref_ResponseQueueInfo", named)
            kept.append(objects.get(message, "ResponseDestination"))  # type: ignore[arg-type]
    except ComError as error:
        status = error.status
    for each in (*kept, named):
        objects.com.release(each)
    assert status is ENOUGH
    assert len(kept) < 20
    objects.com.release(objects.destination(names, is_open=False))


def test_what_one_caller_holds_is_not_counted_for_another(objects: Objects) -> None:
    message = objects.message()
    objects.put(message, "Body", octets(bytes(MOST - 100)))
    with pytest.raises(ComError) as refused:
        objects.put(message, "Extension", octets(bytes(200)))
    assert refused.value.status is ENOUGH
    with DcomClient(objects.machine.endpoint("epm"), ADMINISTRATOR) as boss:
        made = boss.create(clsids.MSMQ_MESSAGE, "IMSMQMessage4")
        boss.call(made, "put_Body", octets(bytes(MOST - 100)))
    objects.put(message, "Body", octets(b""))
    objects.put(message, "Extension", octets(bytes(200)))
    objects.com.release(message)


def test_a_body_that_was_read_counts_until_its_object_goes(objects: Objects) -> None:
    """Received messages cannot be refused any more: then no further one is read."""
    message, destination = objects.message(), objects.destination()
    objects.put(message, "Body", octets(bytes(MOST // 2)))
    for _ in range(3):
        objects.send(message, destination)
    objects.com.release(message)
    queue = objects.open(32, QUEUE)  # type: ignore[arg-type]
    read, status = list[Reference](), None
    while status is None and len(read) < 4:
        try:
            read.append(objects.com.call(queue, "Peek", NO, YES, number(0), NO))
        except ComError as error:
            status = error.status
    assert status is ENOUGH
    assert 1 <= len(read) <= 3
    for each in read:
        objects.com.release(each)
    objects.com.release(objects.com.call(queue, "Peek", NO, NO, number(0), NO))
    objects.empty()
