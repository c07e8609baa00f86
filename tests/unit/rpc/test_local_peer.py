"""Who is at the other end of a Unix socket."""

import os
import socket

import pytest

from rpcqm.base.identity import AUTHENTICATED_USERS, EVERYONE
from rpcqm.rpc.local_peer import identity_of_uid, name_of_uid, peer_uid


def test_the_kernel_tells_the_peers_user() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_uid(ours) == os.geteuid()


@pytest.mark.parametrize("uid", [0, os.geteuid()])
def test_root_and_our_own_user_administrate(uid: int) -> None:
    assert identity_of_uid(uid).is_administrator


def test_anybody_else_is_everyone() -> None:
    stranger = identity_of_uid(54321)
    assert (stranger.name, stranger.sid) == ("uid 54321", EVERYONE)
    assert not stranger.is_administrator
    assert AUTHENTICATED_USERS not in stranger.groups


def test_a_user_has_a_name() -> None:
    assert name_of_uid(0) == "root"
