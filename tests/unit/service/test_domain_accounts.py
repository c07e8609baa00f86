"""Accounts of a domain as they are here: their identities, and their end."""

import gc

import pytest

from rpcqm.base.identity import ANONYMOUS, BUILTIN_ADMINISTRATORS, Identity
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.logon_information import LogonInformation
from rpcqm.service import domain_accounts
from rpcqm.service.domain_accounts import DomainAccounts

MACHINE, DOMAIN = "S-1-5-21-9-9-9", "S-1-5-21-1-2-3"
ALICE = f"{DOMAIN}-1103"


def information(sid: str = ALICE, *groups: str, name: str = "alice") -> LogonInformation:
    return LogonInformation(name, "CORP", Sid.parse(sid), frozenset(map(Sid.parse, groups)))


def log_on(accounts: DomainAccounts, *groups: str, sid: str = ALICE) -> Identity:
    found = accounts.log_on(information(sid, *groups))
    assert found is not None
    return found


@pytest.fixture
def accounts() -> DomainAccounts:
    return DomainAccounts(MACHINE, [f"{DOMAIN}-1200", f"{DOMAIN}-1104"])


def test_who_logs_on_with_the_same_groups_is_the_same(accounts: DomainAccounts) -> None:
    first = log_on(accounts, f"{DOMAIN}-513")
    assert log_on(accounts, f"{DOMAIN}-513") is first
    other = log_on(accounts, f"{DOMAIN}-514")
    assert other.groups - first.groups == {f"{DOMAIN}-514"}
    assert other.validity is first.validity


def test_administrators_are_those_of_the_configuration(accounts: DomainAccounts) -> None:
    assert not log_on(accounts, f"{DOMAIN}-512").is_administrator
    assert log_on(accounts, f"{DOMAIN}-1200").is_administrator
    assert log_on(accounts, sid=f"{DOMAIN}-1104").is_administrator
    assert not log_on(accounts).is_administrator


def test_the_end_of_an_account_ends_all_that_it_has(accounts: DomainAccounts) -> None:
    told: list[str] = []
    accounts.ended_hooks.append(told.append)
    first, second = log_on(accounts), log_on(accounts, f"{DOMAIN}-513")
    bob = log_on(accounts, sid=f"{DOMAIN}-1105")
    accounts.take_over({ALICE: False, bob.sid: True})
    assert told == [ALICE]
    assert (first.has_ended, second.has_ended, bob.has_ended) == (True, True, False)
    assert accounts.log_on(information()) is None
    assert accounts.identity_of_sid(ALICE) is ANONYMOUS
    accounts.take_over({ALICE: False})
    assert told == [ALICE]


def test_an_account_that_is_there_again_logs_on_anew(accounts: DomainAccounts) -> None:
    before = log_on(accounts)
    accounts.take_over({ALICE: False})
    accounts.take_over({ALICE: True})
    assert before.has_ended
    assert not log_on(accounts).has_ended
    assert accounts.identity_of_sid(ALICE).sid == ALICE


def test_the_directory_is_asked_about_whatever_may_be_open(
    accounts: DomainAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also about who was forgotten since, and about who has ended; about nobody else."""
    monkeypatch.setattr(domain_accounts, "MOST_REMEMBERED", 1)
    kept, gone = log_on(accounts), f"{DOMAIN}-1105"
    log_on(accounts, sid=gone)
    log_on(accounts, sid=f"{DOMAIN}-1106")
    gc.collect()
    assert set(accounts.open_accounts()) == {ALICE, f"{DOMAIN}-1106"}
    accounts.end(ALICE)
    assert kept.has_ended
    assert set(accounts.open_accounts()) == {ALICE, f"{DOMAIN}-1106"}


@pytest.mark.bound("domain.remembered")
def test_the_groups_of_few_are_remembered(
    accounts: DomainAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_accounts, "MOST_REMEMBERED", 2)
    for number in (1103, 1105, 1103, 1106):
        log_on(accounts, f"{DOMAIN}-513", sid=f"{DOMAIN}-{number}")
    groups = [len(accounts.identity_of_sid(f"{DOMAIN}-{n}").groups) for n in (1103, 1105, 1106)]
    assert groups == [3, 2, 3]


@pytest.mark.bound("domain.ended")
def test_the_end_of_few_is_remembered(
    accounts: DomainAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_accounts, "MOST_ENDED", 2)
    ended = [f"{DOMAIN}-{number}" for number in (1103, 1105, 1106)]
    accounts.take_over(dict.fromkeys(ended, False))
    assert [accounts.has_ended(sid) for sid in ended] == [False, True, True]


@pytest.mark.parametrize("name", ["", "a\\b", "a/b", "a\x1b[2J", "a\u202eb", "a" * 257, "a\tb"])
def test_names_that_cannot_be_shown_are_refused(accounts: DomainAccounts, name: str) -> None:
    assert accounts.log_on(information(name=name)) is None


def test_accounts_and_groups_of_this_machine_come_from_no_domain(
    accounts: DomainAccounts,
) -> None:
    assert accounts.log_on(information(f"{MACHINE}-1000")) is None
    made = accounts.log_on(information(ALICE, f"{MACHINE}-500", f"{MACHINE}-1000"))
    assert made is not None
    assert not any(each.startswith(MACHINE) for each in made.groups)
    assert BUILTIN_ADMINISTRATORS not in made.groups


def test_a_domain_is_known_by_its_names(accounts: DomainAccounts) -> None:
    assert not accounts.is_named("")
    accounts.add_name("CORP.TEST")
    assert [accounts.is_named(each) for each in ("corp", "Corp.Test", "test", "")] == [
        *(True, True, False, False)
    ]
