"""Requests like ones before have the outcome of the careful path (docs/request-templates.md)."""

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rpcqm.codec.bodies import described
from rpcqm.codec.names.written import format_name
from rpcqm.codec.security.descriptor import SecurityInformation
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.fast.doors.api_leases import RepeatedReceive
from rpcqm.fast.doors.api_requests import HEADS, LONGEST_HEAD, OF_HEAD
from rpcqm.operations.drafts import Draft
from tests.support.api.api_twins import MESSAGES, RECEIVE, ApiHalf, ApiTwins, Asked, api_twins
from tests.support.queue_manager import MEMORY
from tests.support.rpc.callers import ADMINISTRATOR
from tests.support.shadow.comparing import Shadow

HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"Rpcqm-Label": "order"},
    {"Rpcqm-Label": "50%25 of %C3%A9"},
    {"Rpcqm-Label": "%00"},
    {"Rpcqm-Priority": "7", "Rpcqm-Application-Tag": "9"},
    {"Rpcqm-Priority": "8"},
    {"Rpcqm-Ttbr": "60", "Rpcqm-Ttrq": "30"},
    {"Rpcqm-Ttbr": "0"},
    {"Rpcqm-Recoverable": "false"},
    {"Rpcqm-Body-Type": "8"},
    {"Rpcqm-Correlation-Id": "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}\\7"},
    {"Rpcqm-Response-Queue": "answers"},
    {"Rpcqm-Response-Queue": "ANSWERS"},
    {"Rpcqm-Admin-Queue": "answers", "Rpcqm-Acknowledgements": "arrival,receive"},
    {"Rpcqm-Extension-Base64": "AAECAw=="},
    {"Rpcqm-Journal": "true"},
    {"Rpcqm-Dead-Letter": "true"},
    {"Rpcqm-Dead-Letter-Queue": "answers"},
    {"Rpcqm-Encrypt": "true"},
    {"Rpcqm-Transactional": "true"},
    {"Rpcqm-Nothing": "1"},
    {"Idempotency-Key": "one"},
    {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
    {"Content-Type": "text/plain"},
    {"Host": "strange.example"},
    {"Origin": "http://127.0.0.1:15680"},
)
TARGETS = ("/queues/orders", "/queues/answers", "/queues/nowhere", "/queues/-")
BODIES = st.one_of(
    st.sampled_from([b"", b"text", b'{"a": 1}', b"<a/>", b"\xff\0", "é\0".encode(), b"{"]),
    st.binary(max_size=40),
)


@st.composite
def sends(draw: Any) -> Asked:
    headers = draw(st.sampled_from(HEADERS))
    target = draw(st.sampled_from((TARGETS[0],) * 6 + TARGETS))
    query = draw(st.sampled_from(("",) * 8 + ("?queue=answers", "?queue=orders", "?nothing=1")))
    return "POST", f"{target}/messages{query}", draw(BODIES), headers


@st.composite
def receives(draw: Any) -> Asked:
    target = draw(st.sampled_from((TARGETS[0],) * 6 + TARGETS))
    query = draw(
        st.sampled_from(
            ("", "", "", "?lease=5", "?lease=0", "?lease=x", "?max=2", "?correlation_id={}")
        )
    )
    return "POST", f"{target}/receive{query}", b"", {}


@st.composite
def ends(draw: Any) -> Asked:
    number = draw(st.integers(0, 12))
    action = draw(st.sampled_from(["complete"] * 5 + ["release", "extend", "nothing"]))
    name = draw(st.sampled_from([f"{number:022}"] * 6 + [f"%30{number:021}", f"{number}"]))
    return draw(st.sampled_from(["POST"] * 9 + ["GET"])), f"/leases/{name}/{action}", b"", {}


REQUESTS: st.SearchStrategy[Asked] = st.one_of(
    sends(), receives(), ends(), st.just(("GET", MESSAGES, b"", {}))
)
Between = Callable[[ApiHalf], Any]


def later(half: ApiHalf) -> None:
    half.qm.advance(6_000)


def permit(sddl: str) -> Between:
    """Let only some use the queue from now on."""

    def change(half: ApiHalf) -> None:
        parts = SecurityInformation.DACL_SECURITY_INFORMATION
        queues = half.operations.queues
        descriptor = parse_sddl(sddl).encode()
        half.qm.done(queues.set_security(ADMINISTRATOR, format_name("orders"), parts, descriptor))

    return change


def quota(half: ApiHalf) -> None:
    half.qm.find().quota = 1


def journal(half: ApiHalf) -> None:
    half.qm.find().journaling = True


def purge(half: ApiHalf) -> None:
    half.qm.done(half.operations.messages.purge(ADMINISTRATOR, format_name("orders")))


def forget_token(half: ApiHalf) -> None:
    half.qm.done(half.tokens.delete("program"))


def remove_account(half: ApiHalf) -> None:
    half.qm.done(half.accounts.remove("alice"))


def delete_queue(half: ApiHalf) -> None:
    half.qm.done(half.operations.queues.delete(ADMINISTRATOR, format_name("orders")))


def stop_being_ready(half: ApiHalf) -> None:
    half.ready = False


ALL, SENDERS, NOBODY = "D:(A;;GA;;;WD)", "D:(A;;0x4;;;WD)", "D:(A;;GA;;;BA)"
CHANGES: dict[str, Between] = {
    "nothing": lambda half: None,
    "later": later,
    "all": permit(ALL),
    "senders": permit(SENDERS),
    "nobody": permit(NOBODY),
    "quota": quota,
    "journal": journal,
    "purge": purge,
    "token": forget_token,
    "account": remove_account,
    "delete": delete_queue,
    "stopping": stop_being_ready,
}
OFTEN = ["nothing"] * 12 + ["later", "all", "senders"]
SEND: Asked = ("POST", MESSAGES, b"x", {})
TAKE: Asked = ("POST", RECEIVE, b"", {})
LEARNED = {"sent": 1, "read": 2, "ended": 2}
"""What is done quickly once both have done everything three times."""


def complete(number: int) -> Asked:
    return "POST", f"/leases/{number:022}/complete", b"", {}


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[ApiTwins]:
    with api_twins(tmp_path) as both:
        yield both


def learned(twins: ApiTwins) -> None:
    """Let both have sent, received and completed so often that these are known."""
    for number in range(3):
        twins.ask(SEND)
        twins.ask(TAKE)
        twins.ask(complete(number))
    assert twins.halves[0].qm.store.metrics.of("templates") == LEARNED
    assert twins.halves[1].qm.store.metrics.of("templates") == {}


@settings(max_examples=60)
@given(
    turns=st.lists(
        st.tuples(
            st.sampled_from(OFTEN + list(CHANGES)),
            st.lists(REQUESTS, min_size=1, max_size=5),
            st.booleans(),
        ),
        max_size=8,
    )
)
@example(turns=[("nothing", [SEND, SEND], True), ("nothing", [TAKE, TAKE], True)])
def test_programs_are_told_the_same(turns: list[tuple[str, list[Asked], bool]]) -> None:
    with TemporaryDirectory(dir=MEMORY) as directory, api_twins(Path(directory)) as both:
        both.do(permit(ALL))
        learned(both)
        for change, asked, twice in turns:
            both.do(_guarded(CHANGES[change]))
            for turn in (each for _ in range(1 + twice) for each in in_turns(asked)):
                both.ask(*turn)
            both.check()


def in_turns(asked: list[Asked]) -> list[list[Asked]]:
    """All of it in one turn, unless messages go to several queues: their numbers may differ."""
    paths = [path for _, path, _, _ in asked if "/messages" in path]
    if len({"answers" in path for path in paths}) > 1:
        return [[each] for each in asked]
    return [asked]


def _guarded(change: Between) -> Between:
    """What has gone cannot be changed."""

    def guarded(half: ApiHalf) -> str:
        try:
            change(half)
        except Exception as error:
            return type(error).__name__
        return ""

    return guarded


@pytest.mark.parametrize("change", [each for each in CHANGES if each != "nothing"])
@pytest.mark.parametrize("asked", [SEND, TAKE, complete(3)], ids=["send", "receive", "complete"])
def test_what_has_changed_is_seen_by_the_next_request(
    twins: ApiTwins, change: str, asked: Asked
) -> None:
    twins.do(permit(ALL))
    learned(twins)
    twins.ask(SEND, SEND)
    twins.ask(TAKE)
    twins.do(CHANGES[change])
    (answer,) = twins.ask(asked)
    expected = {"token": 401, "account": 401, "nobody": 403, "stopping": 503}
    assert answer.status == expected.get(change, answer.status)
    twins.check()


@pytest.mark.parametrize("headers", HEADERS, ids=str)
def test_each_kind_of_message_is_told_the_same(twins: ApiTwins, headers: dict[str, str]) -> None:
    learned(twins)
    for body in (b"", b"text", b"\xff" * 9, b"{}"):
        asked: Asked = ("POST", MESSAGES, body, headers)
        twins.ask(asked, asked)
        twins.ask(asked)
    for _ in range(8):
        twins.ask(TAKE)
    twins.check()
    twins.do(lambda half: half.qm.advance(45_000))
    twins.check()


def test_messages_go_by_the_name_that_they_were_sent_to(twins: ApiTwins) -> None:
    names = (
        "orders",
        "ORDERS",
        r"DIRECT%3DOS:.%5Cprivate$%5Corders",
        "127.0.0.1%5Cprivate$%5Corders",
    )
    for _ in range(3):
        for name in names:
            twins.ask(("POST", f"/queues/-/messages?queue={name}", b"x", {}))
    twins.check()
    for _ in range(12):
        twins.ask(TAKE)
    assert twins.halves[0].qm.store.metrics.of("templates")["sent"] == len(names) + 3


def test_leases_are_their_accounts(twins: ApiTwins) -> None:
    learned(twins)
    twins.ask(SEND)
    twins.ask(TAKE)

    def by_other(half: ApiHalf) -> int:
        own, half.token = half.token, half.other
        try:
            return half.ask([half.request(complete(3))])[0].status
        finally:
            half.token = own

    assert twins.do(by_other) == 410
    assert twins.ask(complete(3))[0].status == 204
    twins.check()


def test_one_lease_is_completed_once_however_often_a_turn_asks(twins: ApiTwins) -> None:
    learned(twins)
    twins.ask(SEND)
    twins.ask(TAKE)
    statuses = [each.status for each in twins.ask(*[complete(3)] * 3)]
    assert statuses == [204, 410, 410]
    twins.check()


def test_a_header_that_is_there_twice_is_refused_all_the_same(twins: ApiTwins) -> None:
    labelled: Asked = ("POST", MESSAGES, b"x", {"Rpcqm-Label": "a"})
    for _ in range(4):
        twins.ask(labelled)

    def doubled(header: tuple[str, str], half: ApiHalf) -> int:
        request = half.request(labelled)
        request.headers = (*request.headers, header)
        return half.ask([request])[0].status

    token = f"Bearer {twins.halves[0].token}"
    for header in (
        ("Rpcqm-Label", "a"),
        ("rpcqm-label", "a"),
        ("Authorization", token),
        ("authorization", token),
        ("Host", "127.0.0.1:15680"),
    ):
        assert twins.do(partial(doubled, header)) in (400, 403)
    assert twins.ask(labelled)[0].status == 201


def test_secrets_are_not_remembered(twins: ApiTwins) -> None:
    for more in ({}, {"Cookie": "secret"}, {"Idempotency-Key": "secret"}):
        for _ in range(4):
            twins.ask(("POST", MESSAGES, b"x", more))
    half = twins.halves[0]
    repeated = half.api.requests
    assert len(repeated) == 1
    kept = repr(
        [(head, list((of or {}).values())) for head, of in repeated.by_head._by_key.items()]
    )
    assert half.token not in kept
    assert "secret" not in kept


def test_other_settings_count_at_once(twins: ApiTwins) -> None:
    host: Asked = ("POST", MESSAGES, b"x", {"Host": "mail.example.org"})
    settings = twins.halves[0].careful.settings

    def allow(names: frozenset[str]) -> Between:
        def adjust(half: ApiHalf) -> None:
            half.careful.settings = type(settings)(hosts=names)

        return adjust

    twins.do(allow(frozenset({"mail.example.org"})))
    assert [twins.ask(host)[0].status for _ in range(4)] == [201] * 4
    assert twins.halves[0].qm.store.metrics.of("templates") == {"sent": 2}
    twins.do(allow(frozenset()))
    assert twins.ask(host)[0].status == 403


def test_nothing_is_done_quickly_while_templates_are_off(twins: ApiTwins) -> None:
    learned(twins)
    half = twins.halves[0]
    half.qm.speed.turn.is_on = False
    twins.ask(SEND)
    twins.ask(TAKE)
    twins.ask(complete(3))
    assert half.qm.store.metrics.of("templates") == LEARNED
    twins.check()


def test_a_shadow_looks_at_each(twins: ApiTwins) -> None:
    half, differences = twins.halves[0], list[Any]()
    half.qm.speed.turn.shadow = shadow = Shadow(half.qm.store, half.qm.clock, differences.append)
    learned(twins)
    twins.ask(SEND, ("POST", MESSAGES, b"y", {}), SEND)
    twins.ask(TAKE, TAKE)
    twins.ask(complete(3), complete(4), SEND)
    assert shadow.compared == sum(LEARNED.values()) + 3 + 2 + 3
    assert differences == []
    twins.check()


def test_a_lease_begins_when_its_answer_leaves(twins: ApiTwins) -> None:
    half, name = twins.halves[0], format_name("orders")
    drafts = [Draft(b"[1]".ljust(10_000))] * 2
    half.qm.done(half.operations.messages.send(ADMINISTRATOR, (name,), drafts))
    received = RepeatedReceive.of(name, LEASE)
    assert received is not None
    for slow in (
        "rpcqm.operations.shapes.described_body",
        "rpcqm.fast.formats.received_json.described_value",
    ):
        before = half.qm.clock.now()
        with mock.patch(slow, _slow(half, getattr(described, slow.rpartition(".")[2]))):
            answer = asyncio.run(half.api._receive(received, ADMINISTRATOR, b"", ""))
        assert answer is not None
        (told,) = json.loads(answer)["messages"]
        leases = half.operations.messages.leases(ADMINISTRATOR)
        (lease,) = (each for each in leases if str(each.identifier) == told["lease"])
        # Where the answer is compared with the careful one, that is made behind it.
        assert lease.begun >= before + SLOW
        assert lease.expires == lease.begun + LEASE
        assert told["value"] == [1]


LEASE, SLOW = 30_000, 5_000
"""Milliseconds: of a lease, and of decoding."""


def _slow(half: ApiHalf, decode: Callable[..., Any]) -> Callable[..., Any]:
    def decoded(*arguments: Any) -> Any:
        half.qm.clock.advance(SLOW)
        return decode(*arguments)

    return decoded


@pytest.mark.bound("program.repeated_heads", "program.repeated_targets")
def test_what_is_remembered_is_bounded(twins: ApiTwins) -> None:
    half = twins.halves[0]
    repeated = half.api.requests

    def ask(path: str, **more: str) -> None:
        request = half.request(("GET", path, b"", more))
        for _ in range(3):
            half.api._patience.found()
            half.ask([request])

    ask(MESSAGES, Accept="x" * LONGEST_HEAD)
    assert len(repeated) == 0
    for number in range(OF_HEAD + 2):
        ask(f"/queues/orders/messages?limit={number + 1}")
    assert [len(each or ()) for each in repeated.by_head._by_key.values()] == [2]
    for number in range(HEADS + 2):
        ask(MESSAGES, Accept=f"{number}")
    assert len(repeated) == HEADS


def test_who_never_repeats_is_seldom_looked_at(twins: ApiTwins) -> None:
    half = twins.halves[0]
    for number in range(200):
        half.ask([half.request(("GET", MESSAGES, b"", {"Accept": f"{number}"}))])
    assert len(half.api.requests) < 100


def test_answers_are_valid_whatever_the_body(twins: ApiTwins) -> None:
    learned(twins)
    for body in (b"", b"%d", b"\xff", '"\\\n\u2028'.encode(), b"<a>%s</a>"):
        twins.ask(("POST", MESSAGES, body, {}))
        (answer,) = twins.ask(TAKE)
        assert json.loads(answer.body)["messages"][0]["body_size"] == len(body)
