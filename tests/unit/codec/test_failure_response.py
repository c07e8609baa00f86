"""Responses that only report a status, for every method of every interface."""

from types import SimpleNamespace
from typing import Any

import pytest

from rpcqm.codec.interface import Operation, TransferSyntax, load
from rpcqm.codec.types.epm import ept_lookupResponse
from rpcqm.codec.types.mgmt import rpc_mgmt_inq_statsResponse

NAMES = [
    "epm",
    "mgmt",
    "remoteread",
    "qmcomm",
    "qmcomm2",
    "qm2qm",
    "qmmgmt",
    "rpcqm_admin",
    "rpcqm_bulk",
    "rpcqm_cluster",
    "rpcqm_sending",
    "rpcqm_trace",
]


def changed_in_place(operation: Operation) -> set[str]:
    """The [in,out] parameters that are no context handles."""
    handles = {handle.name for handle in operation.context_handles}
    return {p.name for p in operation.declaration.parameters if p.in_ and p.out} - handles


OPERATIONS = [
    pytest.param(operation, syntax, id=f"{name}-{operation.name}-{syntax.name}")
    for name in NAMES
    for operation in load(name).operations
    if operation is not None and not changed_in_place(operation)
    for syntax in load(name).syntaxes
]


@pytest.mark.parametrize(("operation", "syntax"), OPERATIONS)
def test_a_status_alone_can_be_reported(operation: Operation, syntax: TransferSyntax) -> None:
    handles = {handle.name for handle in operation.context_handles}
    request: Any = SimpleNamespace(
        **{name: bytes(20) if name in handles else 0 for name in operation.request_class.__slots__}
    )
    response = operation.failure_response(request, 5)
    again = operation.decode_response(syntax, operation.encode_response(syntax, response))
    assert repr(again) == repr(response)
    if operation.declaration.result is not None:
        assert again.result == 5


def test_the_methods_left_out_are_few() -> None:
    left_out = {
        operation.name
        for name in NAMES
        for operation in load(name).operations
        if operation is not None and changed_in_place(operation)
    }
    assert len(OPERATIONS) > 60
    assert len(left_out) < 16


def test_an_array_has_as_many_zeros_as_the_request_asks_for() -> None:
    operation = load("mgmt").operation("rpc_mgmt_inq_stats")
    response = operation.failure_response(operation.request_class(count=3), 0)
    assert isinstance(response, rpc_mgmt_inq_statsResponse)
    assert response.statistics == [0, 0, 0]
    assert response.count == 3


def test_a_varying_array_is_empty_and_keeps_its_maximum() -> None:
    operation = load("epm").operation("ept_lookup")
    request = operation.request_class(
        inquiry_type=0,
        object=None,
        Ifid=None,
        vers_option=1,
        entry_handle=b"\x01" * 20,
        max_ents=7,
    )
    response = operation.failure_response(request, 0)
    assert isinstance(response, ept_lookupResponse)
    assert (response.entries, response.max_ents, response.num_ents) == ([], 7, 0)
    assert response.entry_handle == b"\x01" * 20
    stub = operation.encode_response(TransferSyntax.NDR, response)
    assert operation.decode_response(TransferSyntax.NDR, stub).entries == []
