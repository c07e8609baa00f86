from rpcqm.base.identity import (
    ANONYMOUS,
    AUTHENTICATED_USERS,
    BUILTIN_ADMINISTRATORS,
    EVERYONE,
    LOCAL_SYSTEM,
    authenticated,
)


def test_everyone_is_who_has_logged_on() -> None:
    assert ANONYMOUS.groups == frozenset()
    assert EVERYONE in authenticated("alice", "S-1-5-21-1-2-3-1000").groups


def test_only_who_proved_it_is_an_authenticated_user() -> None:
    assert AUTHENTICATED_USERS not in ANONYMOUS.groups
    assert AUTHENTICATED_USERS in authenticated("alice", "S-1-5-21-1-2-3-1000").groups
    assert ANONYMOUS.is_anonymous


def test_administrators_are_known_by_their_group() -> None:
    assert authenticated("root", "S-1-5-18", BUILTIN_ADMINISTRATORS).is_administrator
    assert authenticated("system", "S-1-5-18", LOCAL_SYSTEM).is_administrator
    assert not authenticated("alice", "S-1-5-21-1-2-3-1000").is_administrator


def test_an_access_check_sees_the_caller_and_its_groups() -> None:
    assert ANONYMOUS.sids == {"S-1-5-7"}
