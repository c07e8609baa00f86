"""Who logs on by NTLM as nobody has not logged on, whatever seals the calls."""

from collections.abc import Iterator
from itertools import product

import pytest

from rpcqm.rpc.security.context import CONNECT, PKT, PKT_INTEGRITY, PKT_PRIVACY, Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.security.conftest import Connect, add_accounts, bodies, filled
from tests.integration.security.test_callers_who_have_not_logged_on import (
    DENIED,
    METHODS,
    OPEN,
    READERS,
    SWITCHED,
    attacked,
    opened,
    state,
)
from tests.support.rpc.anonymous_logon import AnonymousCredentials
from tests.support.rpc.callers import Fault
from tests.support.rpc.impacket_ntlm import ImpacketCredentials
from tests.support.rpc.remote_reader import PEEK_ACCESS, RECEIVE_ACCESS, Reader

NOBODY = AnonymousCredentials()
IN_SPNEGO = SpnegoCredentials((NOBODY,))
LEVELS = [CONNECT, PKT, PKT_INTEGRITY, PKT_PRIVACY]

raw_and_in_spnego = pytest.mark.parametrize("nobody", [NOBODY, IN_SPNEGO], ids=["raw", "SPNEGO"])


def served(found: dict[str, str]) -> set[str]:
    """The methods that were not refused for who called them."""
    assert len(found) == len(METHODS)
    return {name for name, outcome in found.items() if outcome != DENIED.name}


@raw_and_in_spnego
def test_no_method_serves_them_at_any_level(
    queue_manager: PrivateQueueManager, queue: str, nobody: Credentials
) -> None:
    before = state(queue_manager, queue)
    for level, door in product(LEVELS, ("rpc", "qm2qm")):
        assert served(attacked(queue_manager, nobody, level, door)) == OPEN, (level, door)
    assert state(queue_manager, queue) == before


@raw_and_in_spnego
def test_a_supporting_server_does_not_serve_them(
    supporting: PrivateQueueManager, nobody: Credentials
) -> None:
    assert served(attacked(supporting, nobody, PKT_PRIVACY, "rpc")) == OPEN


def test_an_empty_response_of_lan_manager_is_nobody_too(queue_manager: PrivateQueueManager) -> None:
    found = attacked(queue_manager, AnonymousCredentials(lm_response=b""), PKT_PRIVACY, "rpc")
    assert served(found) == OPEN


def test_impackets_logon_as_nobody_gets_no_further(queue_manager: PrivateQueueManager) -> None:
    """A client that is not ours, which takes the key of zeros as well."""
    found = attacked(queue_manager, ImpacketCredentials("", ""), PKT_PRIVACY, "rpc")
    assert served(found) == OPEN


def test_our_own_client_proves_an_empty_password_which_is_wrong(connect: Connect) -> None:
    """It never asks to be nobody: the first call is refused, and the connection ends."""
    caller = connect("remoteread", credentials=NtlmCredentials("", ""))
    with pytest.raises(Fault) as caught:
        caller.call("R_GetServerPort")
    assert caught.value.status == DENIED
    with pytest.raises(ConnectionError):
        caller.call("R_GetServerPort")


# With the switch they are served as any other caller who has not logged on


@pytest.fixture(scope="module")
def reading() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(
        configuration=SWITCHED.format("allow_nonauthenticated_rpc")
    ) as running:
        add_accounts(running)
        yield running


@raw_and_in_spnego
def test_the_switch_for_readers_opens_no_other_interface(
    reading: PrivateQueueManager, nobody: Credentials
) -> None:
    for level in LEVELS:
        assert served(attacked(reading, nobody, level, "rpc")) == READERS | OPEN, level


def test_the_switch_grants_them_what_anonymous_is_granted(
    connect: Connect, reading: PrivateQueueManager, name: str
) -> None:
    queue = filled(reading, name)
    nobodies: list[Credentials] = [NOBODY, IN_SPNEGO]

    def outcomes(access: int) -> set[str]:
        found = (
            opened(connect, reading, queue, access, nobody, level)
            for nobody, level in product(nobodies, LEVELS)
        )
        return {status for statuses in found for status in statuses}

    refused = {"MQ_ERROR_ACCESS_DENIED"}
    assert outcomes(PEEK_ACCESS) == outcomes(RECEIVE_ACCESS) == refused
    reading.run("queue", "acl", "grant", queue, "everyone", "full")
    assert outcomes(PEEK_ACCESS) == refused
    reading.run("queue", "acl", "grant", queue, "anonymous", "peek")
    assert (outcomes(PEEK_ACCESS), outcomes(RECEIVE_ACCESS)) == ({"MQ_OK"}, refused)
    assert bodies(reading, queue) == [b"secret"]


def test_a_handle_of_somebody_who_has_logged_on_is_not_theirs(
    connect: Connect, reading: PrivateQueueManager, name: str
) -> None:
    """A connection of the same client, with the same octets."""
    queue = filled(reading, name)
    alice = connect("remoteread", user="alice", server=reading)
    handle = Reader(alice.caller).open(rf"DIRECT=OS:.\private$\{queue}", RECEIVE_ACCESS)
    group = alice.group_id
    thief = connect("remoteread", credentials=NOBODY, server=reading, group_id=group)
    with pytest.raises(Fault):
        Reader(thief.caller).status("R_PurgeQueue", phContext=handle)
    assert bodies(reading, queue) == [b"secret"]
