"""Our codecs and impacket's classes, made from the same IDL, agree on every call."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.codec.idl.tree import OperationDeclaration
from rpcqm.codec.interface import load
from rpcqm.codec.ndr.compile import Wire
from rpcqm.codec.ndr.impacket_classes import impacket_module
from tests.support.codec.idl_values import messages
from tests.support.codec.impacket_values import from_impacket, to_impacket
from tests.support.codec.interfaces import INTERFACES

OPERATIONS = [
    pytest.param(name, operation, id=f"{name}-{operation.name}")
    for name in INTERFACES
    for operation in load(name).declaration.operations
    if operation is not None
]


@pytest.mark.parametrize("ndr64", [False, True], ids=["ndr", "ndr64"])
@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_both_codecs_agree_in_both_directions(
    data: st.DataObject, name: str, operation: OperationDeclaration, ndr64: bool
) -> None:
    compiler = load(name).compiler(Wire(ndr64=ndr64))
    module = impacket_module(name)
    for response in (False, True):
        codec = compiler.codec(operation, response)
        value = data.draw(messages(operation, response))
        theirs = to_impacket(module, operation, value, response, ndr64).getData()
        ours = codec.encode(value)
        assert codec.decode(theirs) == value
        read = module.OPNUMS[operation.opnum][response](ours, isNDR64=ndr64)
        assert from_impacket(operation, read, response) == value
        assert len(ours) == len(theirs)
