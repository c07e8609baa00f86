"""`rpcqm explain`: every code has a meaning, by number and by name."""

import json

import pytest

from rpcqm.base.errors import FaultStatus, HResult, NtStatus
from rpcqm.cli.main import main
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.operations.codes import STATUSES, codes, find_codes


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    assert main(["explain", "--json", *words]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


def test_every_code_of_every_kind_has_a_meaning() -> None:
    known = list(codes())
    numbers = sum(map(len, (HResult, NtStatus, FaultStatus, MessageClass)))
    assert len(known) == numbers + len(STATUSES)
    assert all(code.meaning.endswith(".") for code in known)


def test_every_code_is_found_by_its_name_and_its_number() -> None:
    for code in codes():
        assert code in find_codes(code.name.lower())
        assert code in find_codes(f"0x{code.value:X}")
        assert code in find_codes(str(code.value))


@pytest.mark.parametrize(
    "subject", ["0xC00E0025", "mq_error_access_denied", "3222143013", "-1072824283"]
)
def test_a_result_is_found_in_all_its_forms(
    capsys: pytest.CaptureFixture[str], subject: str
) -> None:
    (code,) = explained(capsys, "--", subject)
    assert (code["name"], code["value"]) == ("MQ_ERROR_ACCESS_DENIED", 0xC00E0025)


def test_a_class_is_found_without_its_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = explained(capsys, "NACK_Q_PURGED")
    assert code["name"] == "MQMSG_CLASS_NACK_Q_PURGED"
    assert code["meaning"] == "The queue was purged before the message was received."


def test_the_answers_to_messages_over_http_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = explained(capsys, "400")
    assert (code["name"], code["value"]) == ("HTTP 400", 400)
    assert "log" in str(code["remedy"])


def test_a_win32_error_in_an_hresult_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    codes = explained(capsys, "0x80070005")
    assert [code["name"] for code in codes] == ["E_ACCESSDENIED", "RPC_S_ACCESS_DENIED"]


@pytest.mark.parametrize(
    ("number", "name", "word"),
    [
        ("0x80070057", "E_INVALIDARG", "argument"),
        ("-2147352567", "DISP_E_EXCEPTION", "exception"),
        ("0x80010108", "RPC_E_DISCONNECTED", "object"),
        ("0x80040154", "REGDB_E_CLASSNOTREG", "CLSID"),
    ],
)
def test_the_codes_of_com_and_automation_are_known(
    capsys: pytest.CaptureFixture[str], number: str, name: str, word: str
) -> None:
    (code,) = explained(capsys, "--", number)
    assert (code["name"], code["kind"]) == (name, "result of COM (HRESULT)")
    assert word in str(code["meaning"])


def test_people_get_the_numbers_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "0xC00E0025"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "Name        MQ_ERROR_ACCESS_DENIED",
        "Number      0xC00E0025, 3222143013, -1072824283",
    ]


def test_what_is_unknown_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "MQ_ERROR_ACCES_DENIED"]) == 1
    assert "did you mean `MQ_ERROR_ACCESS_DENIED`" in capsys.readouterr().err
    assert main(["explain", "0xDEADBEEF"]) == 1
    assert capsys.readouterr().err == "rpcqm: No code is known as `0xDEADBEEF`.\n"


@pytest.mark.parametrize(
    "subject",
    [
        "C00E0003",
        "c00e0003",
        "hr=0xC00E0003",
        "hr = C00E0003",
        " 0xC00E0003 ",
        "Exception from HRESULT: 0xC00E0003",
        "HRESULT=-1072824317 in 17 calls",
        r"error 0xC00E0003 at .\private$\orders",
        "MSMQ said MQ_ERROR_QUEUE_NOT_FOUND.",
        "(MQ_ERROR_QUEUE_NOT_FOUND)",
    ],
)
def test_a_code_is_found_without_its_prefix_and_among_other_words(
    capsys: pytest.CaptureFixture[str], subject: str
) -> None:
    (code,) = explained(capsys, "--", subject)
    assert code["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"


def test_eight_digits_that_are_no_decimal_code_are_hexadecimal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [code["name"] for code in explained(capsys, "80070005")] == [
        "E_ACCESSDENIED",
        "RPC_S_ACCESS_DENIED",
    ]
    assert explained(capsys, "80004005") == explained(capsys, "0x80004005")


@pytest.mark.parametrize("text", ["it failed 17 times", "DEADBEEF", "a word", ""])
def test_a_text_without_a_code_has_none(text: str) -> None:
    assert find_codes(text) == []
