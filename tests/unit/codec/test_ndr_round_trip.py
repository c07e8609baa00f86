"""Every request and response of every interface comes back as it went, in each syntax."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.codec.idl.tree import OperationDeclaration
from rpcqm.codec.interface import load
from rpcqm.codec.ndr.compile import MessageCodec, Wire
from tests.support.codec.idl_values import messages
from tests.support.codec.interfaces import INTERFACES, OF_OBJECTS

WIRES = {
    "ndr": Wire(),
    "ndr64": Wire(ndr64=True),
    "big-endian": Wire(big_endian=True),
    "ms_union": Wire(ms_union=True),
}
OPERATIONS = [
    pytest.param(name, operation, wire, id=f"{name}-{operation.name}-{syntax}")
    for name in [*INTERFACES, *OF_OBJECTS]
    for operation in load(name).declaration.own
    if not load(name).declaration.automation
    for syntax, wire in WIRES.items()
    if name in INTERFACES or syntax.startswith("ndr")
]


def codec_of(name: str, made: OperationDeclaration, response: bool, wire: Wire) -> MessageCodec:
    return load(name, ms_union=wire.ms_union).compiler(wire).codec(made, response)


@pytest.mark.parametrize(("name", "operation", "wire"), OPERATIONS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_written_is_read(
    data: st.DataObject, name: str, operation: OperationDeclaration, wire: Wire
) -> None:
    for response in (False, True):
        codec = codec_of(name, operation, response, wire)
        value = data.draw(messages(operation, response))
        stub = codec.encode(value)
        assert codec.decode(stub) == value
        assert codec.decode(memoryview(stub)) == value
        assert codec.decode(stub + b"\xff" * 7) == value, "octets behind the end are ignored"
