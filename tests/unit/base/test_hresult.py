"""Every status code has its specification's number and name, and a meaning for people."""

import csv
from pathlib import Path

import pytest
from impacket.hresult_errors import ERROR_MESSAGES

from rpcqm.base.hresult import HResult, NtStatus, status_name
from rpcqm.base.hresult_texts import MEANINGS, REMEDIES

TABLE = Path(__file__).parents[2] / "vectors" / "mqmq" / "hresults.csv"
ROWS = [
    (int(row["value"], 16), row["name"])
    for row in csv.DictReader(TABLE.read_text("ascii").splitlines())
]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        pytest.param(
            value, name, id=name, marks=pytest.mark.conformance(f"MQMQ-error-0x{value:08X}")
        )
        for value, name in ROWS
    ],
)
def test_code_of_the_table_is_known_by_number_and_name(value: int, name: str) -> None:
    status = HResult(value)
    assert status.name == name
    assert status == value
    assert HResult[name] is status
    assert status_name(value) == name
    assert status.meaning


def test_no_code_is_missing_and_none_is_invented() -> None:
    others = {
        "MQ_OK",
        "MQ_INFORMATION_REMOTE_OPERATION",
        "MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT",
    }
    ours = {status.name for status in HResult if status.name.startswith("MQ")}
    assert ours - {name for _, name in ROWS} == others
    assert len(ROWS) == 145
    assert HResult(0x400E03E8).name == "MQ_INFORMATION_REMOTE_OPERATION"
    assert HResult(0x400E03E9).name == "MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT"


@pytest.mark.parametrize(
    ("status", "value"),
    [
        (NtStatus.STATUS_INVALID_HANDLE, 0xC0000008),
        (NtStatus.STATUS_INVALID_PARAMETER, 0xC000000D),
        (NtStatus.STATUS_ACCESS_DENIED, 0xC0000022),
        (NtStatus.STATUS_SHARING_VIOLATION, 0xC0000043),
        (NtStatus.STATUS_NOT_FOUND, 0xC0000225),
        (NtStatus.STATUS_RETRY, 0xC000022D),
    ],
)
def test_ntstatus_values_of_the_rpc_methods(status: NtStatus, value: int) -> None:
    assert status == value
    assert status_name(value) == status.name
    assert status.meaning


def test_every_code_has_one_sentence_and_no_text_is_an_orphan() -> None:
    names = {status.name for status in HResult} | {status.name for status in NtStatus}
    assert set(MEANINGS) == names
    assert set(REMEDIES) <= names
    for text in [*MEANINGS.values(), *REMEDIES.values()]:
        assert text.endswith(".")
        assert "\n" not in text


def test_remedy_is_empty_where_nothing_helps() -> None:
    assert HResult.MQ_OK.remedy == ""
    assert "rpcqm queue list" in HResult.MQ_ERROR_QUEUE_NOT_FOUND.remedy


def test_name_of_an_unknown_code_is_its_number() -> None:
    assert status_name(0xC00E7777) == "0xC00E7777"
    assert status_name(5) == "0x00000005"


def test_name_of_a_signed_code() -> None:
    assert status_name(-1072824317) == "MQ_ERROR_QUEUE_NOT_FOUND"


NOT_IN_IMPACKET = {
    "S_FALSE": 1,
    "CONNECT_E_NOCONNECTION": 0x80040200,
    "CONNECT_E_ADVISELIMIT": 0x80040201,
    "CONNECT_E_CANNOTCONNECT": 0x80040202,
}


@pytest.mark.parametrize(
    "status", [status for status in HResult if not status.name.startswith("MQ")], ids=str
)
def test_code_of_com_is_the_one_that_others_know(status: HResult) -> None:
    """impacket has the numbers of [MS-ERREF] 2.1.1; those of connection points are elsewhere."""
    if status.name in NOT_IN_IMPACKET:
        assert status == NOT_IN_IMPACKET[status.name]
    else:
        assert ERROR_MESSAGES[status][0] == status.name
