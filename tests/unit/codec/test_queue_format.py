"""Format names survive the way through QUEUE_FORMAT and both transfer syntaxes."""

from uuid import UUID

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import format_name_of, queue_format_of
from rpcqm.codec.types.qmcomm import R_QMOpenRemoteQueueRequest

GUID = "4a4f1cf8-0f2b-4b5a-8d70-0fb6c1a3d9b1"


@pytest.mark.parametrize("syntax", TransferSyntax)
@pytest.mark.parametrize(
    "text",
    [
        r"DIRECT=OS:.\private$\orders",
        r"DIRECT=TCP:10.0.0.1\private$\orders;JOURNAL",
        r"DIRECT=OS:host\private$\orders;late",
        f"PUBLIC={GUID}",
        f"PRIVATE={GUID}\\a;JOURNAL",
        f"MACHINE={GUID};DEADLETTER",
        f"CONNECTOR={GUID}",
        f"DL={GUID}",
        f"DL={GUID}@example.com",
        "MULTICAST=239.1.2.3:80",
    ],
)
def test_a_name_comes_back_as_it_went(text: str, syntax: TransferSyntax) -> None:
    operation = load("qmcomm").operation("R_QMOpenRemoteQueue")
    request = R_QMOpenRemoteQueueRequest(
        pQueueFormat=queue_format_of(FormatName.parse(text)),
        dwCallingProcessID=0,
        dwDesiredAccess=1,
        dwShareMode=0,
        pLicGuid=UUID(GUID),
        dwMQS=0,
    )
    read = operation.decode_request(syntax, operation.encode_request(syntax, request))
    assert format_name_of(read.pQueueFormat) == FormatName.parse(text)


def test_no_name_is_the_unknown_name() -> None:
    structure = queue_format_of(None)
    assert (structure.m_qft, structure.m_SuffixAndFlags, structure.u.value) == (0, 0, None)
    with pytest.raises(MQError) as caught:
        format_name_of(structure)
    assert caught.value.status is HResult.MQ_ERROR_ILLEGAL_FORMATNAME


def test_a_null_direct_name_is_refused() -> None:
    structure = queue_format_of(FormatName.parse(r"DIRECT=OS:.\private$\orders"))
    structure.u.value = None
    with pytest.raises(MQError) as caught:
        format_name_of(structure)
    assert caught.value.status is HResult.MQ_ERROR_ILLEGAL_FORMATNAME
