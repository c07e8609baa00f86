"""Accounts: names, groups, identities, and the file that NTLM reads."""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rpcqm.base.errors import MQError, NtStatus
from rpcqm.base.identity import (
    AUTHENTICATED_USERS,
    BUILTIN_ADMINISTRATORS,
    EVERYONE,
    Identity,
)
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator, NtlmProvider, stored_hash
from rpcqm.service.accounts import Accounts
from rpcqm.store.store import Store
from tests.support.clock import SimulatedClock

HASH = bytes.fromhex("8846f7eaee8fb117ad06bdd830b7586c")
"""NT hash of `password`, the textbook's example."""
OTHER_HASH = bytes(range(16))
BUILTIN_USERS = "S-1-5-32-545"
OWN_UID = 4242
STRANGER_UID = 4243


class World:
    """A store with its accounts; `settle` is the end of a loop turn, `restart` a new process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = SimulatedClock()
        self._turn: list[Callable[[], None]] = []
        self.start()

    def start(self) -> None:
        self.store = Store.open(self.directory, end_of_turn=self._turn.append, clock=self.clock)
        self.accounts = Accounts(self.store, self.directory, clock=self.clock, own_uid=OWN_UID)
        self.settle()

    def settle(self) -> None:
        while self._turn:
            self._turn.pop(0)()

    def restart(self) -> None:
        self.store.close()
        self.start()

    def add(self, name: str, *groups: str, nt_hash: bytes = HASH) -> str:
        done = self.accounts.add(name, nt_hash, groups)
        self.settle()
        return done.result()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.store.close()


def identity(world: World, name: str, domain: str = "") -> Identity:
    found = world.accounts.identity(name, domain)
    assert found is not None
    return found


def test_an_account_gets_a_sid_of_this_machine(world: World) -> None:
    sid = world.add("alice")
    assert sid == f"{world.accounts.machine_sid}-1000"
    assert world.add("bob") == f"{world.accounts.machine_sid}-1001"
    assert identity(world, "alice").sid == sid


def test_accounts_and_the_machine_sid_survive_a_restart(world: World) -> None:
    machine, sid = world.accounts.machine_sid, world.add("alice", "administrators")
    world.restart()
    assert world.accounts.machine_sid == machine
    (account,) = world.accounts.list()
    assert (account.name, account.sid) == ("alice", sid)
    assert account.groups == ("administrators", "users")


def test_an_account_cannot_log_on_before_it_is_durable(world: World) -> None:
    done = world.accounts.add("alice", HASH)
    assert not done.done
    assert "alice" not in world.accounts.user_file.read_text()
    world.settle()
    assert done.done
    assert "alice" in world.accounts.user_file.read_text()


def test_an_identifier_is_never_given_twice(world: World) -> None:
    first = world.add("alice")
    world.accounts.remove("alice")
    world.restart()
    assert world.add("alice") != first


def test_names_are_compared_without_regard_to_case(world: World) -> None:
    world.add("Alice")
    with pytest.raises(MQError) as caught:
        world.accounts.add("aLICE", HASH)
    assert caught.value.status is NtStatus.STATUS_USER_EXISTS
    assert identity(world, "ALICE").name == "Alice"


def test_a_second_account_of_the_name_is_refused_while_the_first_is_on_its_way(
    world: World,
) -> None:
    world.accounts.add("alice", HASH)
    with pytest.raises(MQError) as caught:
        world.accounts.add("alice", OTHER_HASH)
    assert caught.value.status is NtStatus.STATUS_USER_EXISTS


@pytest.mark.parametrize(
    "name", ["", "a:b", "a/b", "a\\b", "a@b", "x" * 21, "tab\t", "new\nline", "dot.", " blank"]
)
def test_a_name_that_breaks_the_rules_is_refused(world: World, name: str) -> None:
    with pytest.raises(MQError) as caught:
        world.accounts.add(name, HASH)
    assert caught.value.status is NtStatus.STATUS_INVALID_ACCOUNT_NAME
    assert world.accounts.list() == []


def test_an_unknown_group_is_refused(world: World) -> None:
    with pytest.raises(MQError) as caught:
        world.accounts.add("alice", HASH, ["wheel"])
    assert caught.value.status is NtStatus.STATUS_NO_SUCH_ALIAS


def test_groups_become_builtin_sids(world: World) -> None:
    world.add("alice", "Administrators")
    world.add("bob")
    world.add("carol", "guests")
    assert identity(world, "alice").is_administrator
    common = {EVERYONE, AUTHENTICATED_USERS}
    assert identity(world, "bob").groups == common | {BUILTIN_USERS}
    assert identity(world, "carol").groups == common | {"S-1-5-32-546"}


def test_an_account_stands_for_any_domain_that_the_caller_claims(world: World) -> None:
    world.add("alice")
    assert identity(world, "alice", "ELSEWHERE") == identity(world, "alice")
    assert world.accounts.identity("mallory", "") is None


def test_an_unknown_account_is_refused(world: World) -> None:
    with pytest.raises(MQError) as removing:
        world.accounts.remove("nobody")
    with pytest.raises(MQError) as changing:
        world.accounts.set_password("nobody", HASH)
    assert removing.value.status is changing.value.status is NtStatus.STATUS_NO_SUCH_USER


def test_the_file_is_private_and_in_smbpasswd_format(world: World) -> None:
    world.add("alice")
    path = world.accounts.user_file
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    changed = f"{world.clock.now() // 1000:08X}"
    lm, nt = "0" * 32, HASH.hex().upper()
    assert path.read_text() == f"alice:1000:{lm}:{nt}:[U          ]:LCT-{changed}\n"


def test_a_new_password_keeps_the_others_as_they_are(world: World) -> None:
    world.add("alice")
    world.add("bob")
    before = world.accounts.user_file.read_text().splitlines()
    world.restart()
    world.clock.advance(60_000)
    world.accounts.set_password("ALICE", OTHER_HASH)
    after = world.accounts.user_file.read_text().splitlines()
    assert after[1] == before[1]
    assert OTHER_HASH.hex().upper() in after[0]
    assert after[0] != before[0]


def test_a_removed_account_leaves_the_file_at_once(world: World) -> None:
    world.add("alice")
    done = world.accounts.remove("alice")
    assert world.accounts.user_file.read_text() == ""
    assert world.accounts.list() == []
    world.settle()
    assert done.done
    world.restart()
    assert world.accounts.list() == []


def log_on(world: World, name: str, password: str) -> Identity:
    level = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY
    server = NtlmProvider(world.accounts).accept(level)
    client = NtlmInitiator(NtlmCredentials(name, password), level)
    server.step(client.step(server.step(client.step(b""))))
    return server.peer()


def test_ntlm_reads_the_file(world: World) -> None:
    world.add("alice", "administrators")
    assert log_on(world, "alice", "password") == identity(world, "alice")
    with pytest.raises(AuthenticationError):
        log_on(world, "alice", "wrong")
    world.accounts.remove("alice")
    with pytest.raises(AuthenticationError):
        log_on(world, "alice", "password")


def test_root_and_the_service_itself_are_administrators(world: World) -> None:
    for uid in (0, OWN_UID):
        local = world.accounts.local_identity(uid)
        assert BUILTIN_ADMINISTRATORS in local.groups
        assert local.sid == f"{world.accounts.machine_sid}-500"


def test_a_local_user_is_the_account_of_exactly_the_same_name(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("alice")
    names = {STRANGER_UID: "alice", STRANGER_UID + 1: "ALICE"}
    monkeypatch.setattr(
        "rpcqm.service.accounts.pwd.getpwuid", lambda uid: SimpleNamespace(pw_name=names[uid])
    )
    assert world.accounts.local_identity(STRANGER_UID) == identity(world, "alice")
    assert world.accounts.local_identity(STRANGER_UID + 1) == Identity("ALICE", EVERYONE)


def test_a_local_user_without_a_name_or_an_account_is_one_of_everyone(world: World) -> None:
    assert world.accounts.local_identity(STRANGER_UID) == Identity(str(STRANGER_UID), EVERYONE)


def test_a_disk_that_refuses_the_file_is_told(world: World, tmp_path: Path) -> None:
    (tmp_path / "accounts.new").mkdir()
    done = world.accounts.add("alice", HASH)
    world.settle()
    assert isinstance(done.error, MQError)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x1c", "\u202e"], ids=ascii)
def test_a_name_that_could_end_a_line_is_refused(world: World, separator: str) -> None:
    with pytest.raises(MQError, match="STATUS_INVALID_ACCOUNT_NAME"):
        world.accounts.add(f"x{separator}alice", HASH)


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0b"], ids=ascii)
def test_a_line_of_the_file_ends_where_a_line_feed_is(world: World, separator: str) -> None:
    """What an older version let in does not stand for another account."""
    world.add("alice")
    forged = f"x{separator}alice:9:{'0' * 32}:{'0' * 32}:[U          ]:LCT-00000000\n"
    world.accounts.user_file.write_text(forged + world.accounts.user_file.read_text())
    assert stored_hash(world.accounts.user_file, "alice", "") == HASH


def test_names_are_folded_alike_everywhere(world: World) -> None:
    """In capitals the dotless i is that of kim."""
    world.add("kim")
    assert stored_hash(world.accounts.user_file, "KIM", "") == HASH
    assert stored_hash(world.accounts.user_file, "k\u0131m", "") is None
    assert world.accounts.identity("k\u0131m", "") is None


@pytest.mark.parametrize("restarted", [False, True])
def test_an_observer_sees_what_administrators_see_and_is_none(
    world: World, restarted: bool
) -> None:
    """G654."""
    world.add("auditor", "observers")
    if restarted:
        world.restart()
    identity = world.accounts.identity("auditor", "")
    assert identity is not None
    assert identity.read_only
    assert identity.may_look
    assert not identity.is_administrator
    (told,) = world.accounts.list()
    assert told.groups == ("observers",)


@pytest.mark.parametrize("other", ["administrators", "users", "guests"])
def test_an_observer_is_in_no_other_group(world: World, other: str) -> None:
    with pytest.raises(MQError, match="only group"):
        world.add("auditor", "observers", other)


def test_another_password_is_another_standing(world: World) -> None:
    world.add("alice")
    logged_on = identity(world, "alice")
    before = world.accounts.standing(logged_on)
    assert before is not None
    assert before == world.accounts.standing(logged_on)
    world.clock.advance(1)
    world.accounts.set_password("alice", OTHER_HASH).result()
    after = world.accounts.standing(logged_on)
    assert after is not None
    assert after[1] != before[1]


def test_an_account_that_was_removed_has_no_standing(world: World) -> None:
    world.add("alice")
    logged_on = identity(world, "alice")
    world.accounts.remove("alice")
    world.settle()
    assert world.accounts.standing(logged_on) is None
