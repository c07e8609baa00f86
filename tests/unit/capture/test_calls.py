"""Captured connections become calls, and sealed ones are opened with an account."""

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.capture.analysis import Analysis, Exchange
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.conversation.recognition import Recognition
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import read_records
from rpcqm.capture.file.record import Record
from rpcqm.capture.unsealing.accounts import UnsealingAccount, parse_account, read_keytabs
from rpcqm.client.passwords import nt_hash
from tests.support.accounts import PASSWORD
from tests.support.capture.analysed import calls_of

CAPTURES = Path(__file__).parents[2] / "vectors" / "captures"
ALICE = parse_account(f"alice:{PASSWORD}")
KEYTAB = CAPTURES / "kerberos.keytab"
LEVELS = ("none", "connect", "packet", "integrity", "privacy")


def analysed(
    path: Path,
    accounts: tuple[UnsealingAccount, ...] = (),
    keep: Callable[[int, Record], bool] = lambda number, record: True,
) -> tuple[list[Exchange], Problems]:
    """The calls of those records that are kept."""
    problems = Problems()
    found: list[Exchange] = []
    analysis = Analysis(found.append, problems, accounts)
    for number, record in enumerate(read_records(path, problems)):
        if keep(number, record):
            analysis.feed(record)
    analysis.finish()
    return found, problems


def outcome(call: Exchange) -> tuple[str, str, str | None]:
    return call.interface_name, call.name, call.status_name


def outcomes(path: Path, *accounts: UnsealingAccount) -> list[tuple[str, str, str | None]]:
    found, problems = calls_of(path, accounts)
    assert problems.total == 0
    return sorted(map(outcome, found), key=str)


@pytest.mark.parametrize("level", LEVELS)
def test_a_client_of_wine_is_read_at_every_level(level: str) -> None:
    """The calls of all levels are the same; Wine polls the cancel a varying number of times."""
    plain = Counter(outcomes(CAPTURES / "wine-none.pcapng"))
    found = Counter(outcomes(CAPTURES / f"wine-{level}.pcapng", ALICE))
    polled = ("RemoteRead", "R_CancelReceive", "STATUS_NOT_FOUND")
    plain[polled] = found[polled] = min(plain[polled], found[polled], 1)
    assert found == plain
    assert found["RemoteRead", "R_StartReceive", "MQ_ERROR_OPERATION_CANCELLED"] == 1
    assert found["ept", "ept_map", "rpc_s_ok"] == 1


def test_a_client_with_a_ticket_is_read_with_the_services_key() -> None:
    """The same client, once sealed by NTLM and once by Kerberos."""
    path, keys = CAPTURES / "impacket-kerberos.pcapng", read_keytabs([KEYTAB])
    assert outcomes(path, *keys) == outcomes(CAPTURES / "impacket-privacy.pcapng", ALICE)
    sealed = [call for call in calls_of(path)[0] if call.sealed]
    assert len(sealed) == 25
    assert {call.conversation.account for call in sealed} == {""}


def test_samba_signs_headers_under_kerberos() -> None:
    found, problems = calls_of(CAPTURES / "samba-kerberos.pcapng", read_keytabs([KEYTAB]))
    assert problems.total == 0
    assert {call.conversation.account for call in found} == {"RPCQM.TEST\\alice"}
    assert [outcome(call) for call in found] == [
        *[("ept", "ept_lookup", "rpc_s_ok")] * 7,
        ("ept", "ept_lookup", "ept_s_not_registered"),
    ]


def test_a_gap_costs_only_what_it_cut_under_kerberos() -> None:
    path, keys = CAPTURES / "impacket-kerberos.pcapng", tuple(read_keytabs([KEYTAB]))
    whole, _ = analysed(path, keys)
    cut = next(call for call in whole if call.name == "R_CreateCursor").offset
    found, problems = analysed(path, keys, lambda number, record: record[4] != cut)
    assert problems.counts == {"gap": 1}
    names = Counter(call.name for call in whole if not call.sealed)
    left = Counter(call.name for call in found if not call.sealed)
    assert names - left == Counter({"R_CreateCursor": 1})


@pytest.mark.parametrize("level", ["none", "integrity", "privacy"])
def test_a_client_of_impacket_is_read_at_every_level(level: str) -> None:
    found = Counter(outcomes(CAPTURES / f"impacket-{level}.pcapng", ALICE))
    assert found["RemoteRead", "R_MoveMessage", "MQ_OK"] == 1
    assert found["RemoteRead", "R_OpenQueue", "MQ_ERROR_QUEUE_NOT_FOUND"] == 1
    assert found.total() == 27


def test_sealed_calls_without_an_account_keep_their_sizes() -> None:
    found, problems = calls_of(CAPTURES / "impacket-privacy.pcapng")
    opened, without = calls_of(CAPTURES / "impacket-privacy.pcapng", [ALICE])
    assert (problems.counts, without.counts) == ({"sealed": 2}, {})
    sealed = [call for call in found if call.sealed]
    assert {call.interface_name for call in sealed} == {"RemoteRead", "qmmgmt"}
    assert len(sealed) == 25
    assert all(call.request is None for call in sealed if isinstance(call, CapturedCall))
    sizes = [(call.request_size, call.response_size) for call in found]
    assert sizes == [(call.request_size, call.response_size) for call in opened]


def test_an_account_may_be_its_hash() -> None:
    path = CAPTURES / "impacket-privacy.pcapng"
    digits = nt_hash(PASSWORD).hex()
    for text in (f"alice:{digits}", f"\\ALICE:{'aa' * 16}:{digits}", f"X\\Alice:{PASSWORD}"):
        assert not any(call.sealed for call in calls_of(path, [parse_account(text)])[0])


@pytest.mark.parametrize("text", ["alice:wrong", "bob:" + PASSWORD])
def test_another_account_opens_nothing(text: str) -> None:
    found, _ = calls_of(CAPTURES / "wine-privacy.pcapng", [parse_account(text)])
    assert sum(call.sealed for call in found) > 30


def test_who_calls_at_which_level_is_known() -> None:
    found, _ = calls_of(CAPTURES / "impacket-integrity.pcapng")
    reading = [call.conversation for call in found if call.interface_name == "RemoteRead"]
    assert {(each.account.lower(), each.level) for each in reading} == {("alice", 5)}
    assert len({each.group for each in reading} - {0}) == 1


def test_a_large_answer_is_put_together_from_its_fragments() -> None:
    for level in ("none", "integrity", "privacy"):
        found, _ = calls_of(CAPTURES / f"impacket-{level}.pcapng", [ALICE])
        large = max(found, key=lambda call: call.response_size)
        assert isinstance(large, CapturedCall)
        (section, *_) = large.decoded_response().ppPacketSections
        assert b"x" * 60_000 in section.pSectionBuffer


def test_the_endpoint_mapper_tells_what_a_port_serves() -> None:
    """Without its bind, a connection's interface is what the mapper said of the port."""

    def unbound(number: int, record: Record) -> bool:
        return b"\x05\x00\x0b" not in record[2] or b"\x00\x87" in record[2][34:38]

    found, _ = analysed(CAPTURES / "impacket-none.pcapng", keep=unbound)
    assert ("RemoteRead", "R_GetServerPort", "MQ_OK") in map(outcome, found)


@pytest.mark.parametrize("first", [15, 30, 41, 60, 77])
def test_a_connection_is_read_from_its_middle(first: int) -> None:
    whole, _ = calls_of(CAPTURES / "wine-none.pcapng")
    found, _ = analysed(CAPTURES / "wine-none.pcapng", keep=lambda n, _: n < 12 or n >= first)
    known = [outcome(call) for call in found if isinstance(call, CapturedCall) and not call.note]
    assert len(known) >= len(whole) - first / 2
    assert Counter(known) <= Counter(map(outcome, whole))


def test_without_anything_known_calls_have_numbers() -> None:
    found, _ = analysed(CAPTURES / "wine-none.pcapng", keep=lambda n, _: n >= 40)
    unknown = [call for call in found if call.interface_name == "unknown"]
    assert 0 < len(unknown) < len(found) / 2, "until their types tell"
    assert all(call.name.startswith("opnum ") and call.status is None for call in unknown)
    assert found[-1].interface_name == "RemoteRead", "since the bind of another connection"


def without(lost: int) -> Callable[[int, Record], bool]:
    return lambda number, _: number != lost


def test_gaps_cost_only_what_they_cut() -> None:
    whole, _ = calls_of(CAPTURES / "impacket-none.pcapng")
    for lost in range(10, 90, 7):
        found, problems = analysed(CAPTURES / "impacket-none.pcapng", keep=without(lost))
        right = Counter(map(outcome, found)) & Counter(map(outcome, whole))
        assert right.total() >= len(whole) - 2, f"without record {lost}"
        assert set(problems.counts) <= {"gap"}


def test_a_gap_ends_the_unsealing_of_its_connection() -> None:
    found, problems = analysed(
        CAPTURES / "impacket-privacy.pcapng",
        (ALICE,),
        keep=lambda n, record: n != 40 or len(record[2]) < 100,
    )
    sealed = [call for call in found if call.sealed]
    assert bool(sealed) == bool(problems.counts["gap"])


def test_calls_from_the_middle_of_a_connection_are_recognised_by_their_types() -> None:
    """The first may be one of several interfaces; the endpoint mapper was not heard."""
    path = CAPTURES / "impacket-none.pcapng"
    found, problems = analysed(path, keep=lambda number, record: number > 40)
    assert problems.total == 0
    names = [outcome(call)[:2] for call in found if call.conversation.number == 1]
    recognised = [name for interface, name in names if interface == "RemoteRead"]
    assert len(recognised) == len(names) - 1 == 13
    assert {"R_StartReceive", "R_EndReceive", "R_MoveMessage", "R_PurgeQueue"} < set(recognised)


@given(
    opnum=st.integers(0, 40),
    stubs=st.lists(st.binary(max_size=64), min_size=2, max_size=8),
    big_endian=st.booleans(),
)
def test_what_is_no_call_is_not_recognised(
    opnum: int, stubs: list[bytes], big_endian: bool
) -> None:
    """Octets that are nothing may look like several methods, and raise nothing."""
    recognition = Recognition()
    for request, response in itertools.pairwise(stubs):
        found = recognition.look(0, opnum, request, response, big_endian)
        assert found is None or found.operation(opnum) is not None
