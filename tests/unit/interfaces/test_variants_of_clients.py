"""Each PROPVARIANT that a client may hand in is read as its octets say ([MS-MQMQ] 2.2.13.1)."""

import pytest

from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.properties import PropVariant
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from rpcqm.interfaces import qmmgmt
from rpcqm.service import interfaces
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, CallServer, Served
from tests.unit.codec.test_properties import VARIANTS

CONNECTED, VT_NULL, VT_LPWSTR = 4, 1, 31
NULL_ON_THE_WIRE = b"\1\0" + bytes(6) + b"\1\0"
"""vt, three reserved numbers, and the tag of the union, which has no arm."""


@pytest.mark.parametrize(
    ("union", "pointee"),
    [
        pytest.param(
            bytes.fromhex(union.replace(" ", "")),
            bytes.fromhex(pointee.replace(" ", "")),
            id=f"{number}-{point}",
            marks=pytest.mark.conformance(f"MQMQ-variant-{point}"),
        )
        for number, (point, _, union, pointee) in enumerate(VARIANTS)
    ],
)
def test_a_variant_of_any_type_may_be_handed_in_and_is_overwritten(
    qm: RunningQueueManager, union: bytes, pointee: bytes
) -> None:
    server = CallServer(qm, Served("qmmgmt", interfaces.qmmgmt(qm.engine), qmmgmt.POLICY))
    caller = server.connect(ADMINISTRATOR)
    interface = server.interfaces["qmmgmt"].interface
    operation = interface.operation("R_QMMgmtGetInfo")
    request = operation.request_class(
        pObjectFormat=MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 0)),
        cp=1,
        aProp=[CONNECTED],
        apVar=[propvariant_of(PropVariant.of(VT_NULL))],
    )
    stub = operation.encode_request(TransferSyntax.NDR, request)
    assert stub.endswith(NULL_ON_THE_WIRE)
    handed_in = stub.removesuffix(NULL_ON_THE_WIRE) + union[:2] + bytes(6) + union + pointee
    call = caller.send_stub(interface, operation, handed_in)
    caller.settle()
    (told,) = call.result().apVar
    assert variant_of(told) == PropVariant.of(VT_LPWSTR, "CONNECTED")
