"""Every field of a stub is told with its offset, in both transfer syntaxes."""

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.capture.conversation.interfaces import NAMES
from rpcqm.capture.ndr_fields import stub_fields
from rpcqm.codec.interface import Operation, TransferSyntax, load
from tests.support.codec.idl_values import messages

OPERATIONS = [
    pytest.param(operation, id=f"{name}-{operation.name}")
    for name in NAMES
    for operation in load(name).operations
    if operation is not None
]
PATIENT = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("operation", OPERATIONS)
@PATIENT
@given(data=st.data())
def test_the_walk_ends_where_the_stub_ends(operation: Operation, data: st.DataObject) -> None:
    """Read by the tree what the compiled codec wrote: nothing is missing, nothing is left."""
    response = data.draw(st.booleans())
    syntax = data.draw(st.sampled_from(list(TransferSyntax)))
    value = data.draw(messages(operation.declaration, response))
    codec = operation.codec(syntax)
    stub = (codec.response if response else codec.request).encode(value)
    fields, why = stub_fields(operation, response, syntax, stub)
    assert why == ""
    rest = [field for field in fields if field.path == "#rest"]
    assert sum(len(field.value) for field in rest) < 8, "only padding may be left"
    ends = [field.offset + field.size for field in fields]
    assert ends == sorted(ends)
    _assert_told(value, {field.path: field.value for field in fields})


def _assert_told(value: Any, told: dict[str, Any]) -> None:
    """The parameters of plain types are what the codec was given."""
    for name in value.__slots__:
        given_value = getattr(value, name)
        if name in told and type(given_value) in (int, bytes, str, uuid.UUID):
            shown = told[name]
            assert shown == given_value or isinstance(shown, str), name


def test_what_is_cut_short_is_told_up_to_there() -> None:
    operation = load("remoteread").operation("R_StartReceive")
    fields, why = stub_fields(operation, False, TransferSyntax.NDR, bytes(34))
    assert [field.path for field in fields] == ["phContext", "LookupId"]
    assert "offset 32" in why


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([each.values[0] for each in OPERATIONS]), st.binary(max_size=200))
def test_no_octets_stop_the_walk(operation: object, octets: bytes) -> None:
    assert isinstance(operation, Operation)
    for syntax in TransferSyntax:
        for response in (False, True):
            stub_fields(operation, response, syntax, octets)
