"""Sessions of the pages, one-time logons and forms, with a clock that the test moves."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from rpcqm.base.ended_rights import EndedRights, OpenKind
from rpcqm.base.errors import MQError
from rpcqm.base.identity import Identity
from rpcqm.console.application import Console, ConsoleSettings
from rpcqm.console.forms import MOST_FIELDS, read_fields
from rpcqm.console.sessions import (
    MOST_SESSIONS,
    SESSIONS_OF_ACCOUNT,
    Place,
    Sessions,
    Standing,
)
from rpcqm.operations.logons import LIFE, MOST_WAITING, LogonOperations
from rpcqm.operations.operations import Operations
from tests.support.clock import SimulatedClock
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

PLACE = Place("here.localhost:1", 1, secure=False)


class KnownAccounts:
    """Accounts whose passwords a test changes."""

    def __init__(self) -> None:
        self.stamps: dict[str, bytes] = {}

    def log_on(self, name: str, password: str, address: str) -> Identity | None:
        raise NotImplementedError

    def show_logon(self, text: str, address: str) -> Identity | None:
        raise NotImplementedError

    def standing(self, identity: Identity) -> Standing | None:
        stamp = self.stamps.get(identity.sid, b"first")
        return Standing(identity, stamp) if stamp else None


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def accounts() -> KnownAccounts:
    return KnownAccounts()


@pytest.fixture
def sessions(accounts: KnownAccounts, clock: SimulatedClock) -> Sessions:
    return Sessions(accounts, clock, 2)


def begin(sessions: Sessions, identity: Identity = ALICE) -> str:
    begun = sessions.begin(identity, PLACE)
    assert begun is not None
    return begun[0]


def test_a_session_lasts_as_long_as_is_set(sessions: Sessions, clock: SimulatedClock) -> None:
    secret = begin(sessions)
    clock.advance(2 * 3_600_000 - 1)
    assert sessions.find(secret, PLACE) is not None
    clock.advance(1)
    assert sessions.find(secret, PLACE) is None


def test_a_session_is_good_at_its_own_place_only(sessions: Sessions) -> None:
    secret = begin(sessions)
    for other in (
        replace(PLACE, authority="there.localhost:1"),
        replace(PLACE, port=2),
        replace(PLACE, secure=True),
    ):
        assert sessions.find(secret, other) is None
    assert sessions.find(secret, PLACE) is not None


def test_a_session_ends_with_another_password_and_with_the_account(
    sessions: Sessions, accounts: KnownAccounts
) -> None:
    for stamp in (b"second", b""):
        accounts.stamps.pop(ALICE.sid, None)
        secret = begin(sessions)
        accounts.stamps[ALICE.sid] = stamp
        assert sessions.find(secret, PLACE) is None
        accounts.stamps.pop(ALICE.sid)
        assert sessions.find(secret, PLACE) is None, "what has ended stays ended"


@pytest.mark.bound("console.sessions", "console.sessions_of_account")
def test_sessions_are_bounded_and_the_oldest_ends(sessions: Sessions) -> None:
    mine = [begin(sessions) for _ in range(SESSIONS_OF_ACCOUNT)]
    assert all(sessions.find(secret, PLACE) for secret in mine)
    begin(sessions)
    assert [secret for secret in mine if not sessions.find(secret, PLACE)] == mine[:1]
    others = [
        begin(sessions, replace(ALICE, sid=f"S-1-5-{number}"))
        for number in range(MOST_SESSIONS - SESSIONS_OF_ACCOUNT)
    ]
    assert all(sessions.find(secret, PLACE) for secret in (*mine[1:], *others))
    begin(sessions, replace(ALICE, sid="S-1-5-9999"))
    assert sessions.find(mine[1], PLACE) is None
    assert sessions.find(mine[2], PLACE) is not None


@pytest.mark.bound("console.logon_life")
def test_a_one_time_logon_is_good_once_within_its_minute(clock: SimulatedClock) -> None:
    logons = LogonOperations(clock)
    token = logons.create(ADMINISTRATOR)
    clock.advance(LIFE - 1)
    assert logons.redeem(token) == ADMINISTRATOR
    assert logons.redeem(token) is None
    late = logons.create(ADMINISTRATOR)
    clock.advance(LIFE)
    assert logons.redeem(late) is None
    assert logons.redeem("") is None


@pytest.mark.bound("console.logons_waiting")
def test_a_one_time_logon_ends_with_its_account(clock: SimulatedClock) -> None:
    logons, ended = LogonOperations(clock), EndedRights()
    ended.subscribe(OpenKind.ONE_TIME_LOGON, logons.end_all)
    text = logons.create(ADMINISTRATOR)
    ended.tell(ALICE.sid)
    assert logons.redeem(text) == ADMINISTRATOR
    text = logons.create(ADMINISTRATOR)
    ended.tell(ADMINISTRATOR.sid)
    assert logons.redeem(text) is None


def test_one_time_logons_are_bounded(clock: SimulatedClock) -> None:
    logons = LogonOperations(clock)
    tokens = [logons.create(ADMINISTRATOR) for _ in range(MOST_WAITING + 1)]
    assert logons.redeem(tokens[0]) is None
    assert all(logons.redeem(token) for token in tokens[1:])


def test_one_time_logons_are_for_administrators(clock: SimulatedClock) -> None:
    with pytest.raises(MQError, match="ACCESS_DENIED"):
        LogonOperations(clock).create(ALICE)


@pytest.mark.bound("console.fields")
def test_forms_have_so_many_fields(clock: SimulatedClock) -> None:
    assert len(read_fields(b"a=1&" * MOST_FIELDS).values) == MOST_FIELDS
    with pytest.raises(MQError, match="too many fields"):
        read_fields(b"a=1&" * (MOST_FIELDS + 1))


def test_a_form_that_is_not_utf_8_is_refused() -> None:
    assert read_fields(b"a=%C3%BC+b&a=2").all("a") == ["ü b", "2"]
    with pytest.raises(MQError, match="UTF-8"):
        read_fields(b"a=%FC")


def test_what_pages_follow_ends_with_the_rights_of_their_account(
    accounts: KnownAccounts, clock: SimulatedClock
) -> None:
    """At once, and not only when somebody looks for changes."""

    async def follow() -> bytes | None:
        operations = cast(Operations, SimpleNamespace(pulse=lambda: 0))
        console = Console(operations, accounts, clock, ConsoleSettings("here"))
        begun = console.sessions.begin(ALICE, PLACE)
        assert begun is not None
        followed = console.changes.listen(begun[1])
        assert followed is not None
        await followed.next()
        console.end_sessions(ALICE.sid)
        assert followed.ended
        return await followed.next()

    assert asyncio.run(follow()) is None
