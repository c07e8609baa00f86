"""What a real `rpcqm serve` says and asks when callers log on, and what its log keeps of them."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.errors import RpcFault
from rpcqm.codec.interface import load
from rpcqm.codec.types import remoteread
from rpcqm.rpc import pdu
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security.context import PKT_PRIVACY, Authentication, AuthenticationError, Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator
from rpcqm.rpc.security.ntlm_messages import AvId, pack_negotiate, read_challenge
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags
from rpcqm.rpc.security.spnego import SpnegoCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from rpcqm.testing.private import StartFailedError
from tests.support.rpc.probe import bind, element
from tests.support.rpc.rpc_sockets import read_pdu
from tests.support.rpc.silver_ticket import write_keytab

Flag = NegotiateFlags
PASSWORD = "correct horse battery"
NAME = "workstation-of-alice"
NETBIOS_NAME = "WORKSTATION-OF-"
BASE = f'name = "{NAME}"\n[storage]\nreserve = 1\n[logging]\nformat = "json"\n'
ASKED = int(
    Flag.NTLMSSP_NEGOTIATE_UNICODE
    | Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
    | Flag.NTLMSSP_NEGOTIATE_128
)
EPOCH, TICKS_OF_A_DAY = 116_444_736_000_000_000, 864_000_000_000
"""Units of 100 ns: from 1601 to 1970, and in a day."""


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=BASE) as queue_manager:
        queue_manager.run("user", "add", "alice", "--password-stdin", input=PASSWORD)
        yield queue_manager


def logs_on(queue_manager: PrivateQueueManager, credentials: Credentials) -> bool:
    """Whether a call under these credentials is served."""

    async def call() -> bool:
        host, port = queue_manager.endpoint("rpc")
        try:
            async with await RpcClient.connect_tcp(
                host, port, credentials=credentials, level=PKT_PRIVACY
            ) as client:
                binding = await client.bind(load("remoteread"))
                await binding.call("R_GetServerPort", remoteread.R_GetServerPortRequest())
        except (AuthenticationError, RpcFault):
            return False
        return True

    return asyncio.run(asyncio.wait_for(call(), 30))


def entries(queue_manager: PrivateQueueManager, event: str) -> list[dict[str, Any]]:
    """The lines of the log that tell of one kind of event."""
    lines = [json.loads(line) for line in queue_manager.log.splitlines()]
    return [line for line in lines if line["event"] == event]


# What the server says.


def challenge_over_tcp(queue_manager: PrivateQueueManager, flags: int) -> bytes:
    """The CHALLENGE in the answer to a bind."""
    token = pdu.SecurityTrailer(10, PKT_PRIVACY, 1, pack_negotiate(flags))
    with socket.create_connection(queue_manager.endpoint("rpc"), timeout=30) as plain:
        interface = load("remoteread")
        contexts = (element(0, pdu.SyntaxId(interface.uuid, *interface.version)),)
        plain.sendall(bind(p_context_elem=contexts, auth=token))
        answer = read_pdu(plain)
    assert isinstance(answer, pdu.BindAck)
    assert answer.auth is not None
    return answer.auth.auth_value


@pytest.mark.parametrize("asked", [0, Flag.NTLMSSP_NEGOTIATE_VERSION], ids=["unasked", "asked"])
def test_a_challenge_has_a_version_the_servers_names_and_a_time(
    queue_manager: PrivateQueueManager, asked: int
) -> None:
    """[MS-NLMP] 2.2.1.2 and 3.2.5.1.1; without the time clients make no integrity code."""
    challenge = challenge_over_tcp(queue_manager, ASKED | asked)
    assert bool(challenge[48:56].strip(b"\0")) is bool(asked)
    length, _, offset = struct.unpack_from("<HHI", challenge, 12)
    assert offset == 56
    assert challenge[offset : offset + length].decode("utf-16-le") == NETBIOS_NAME
    info = dict(read_challenge(challenge).target_info)
    texts = {kind: info[kind].decode("utf-16-le") for kind in (1, 2, 3)}
    assert texts == {1: NETBIOS_NAME, 2: NETBIOS_NAME, 3: NAME}
    (ticks,) = struct.unpack("<Q", info[AvId.MsvAvTimestamp])
    now = EPOCH + time.time_ns() // 100
    assert abs(now - ticks) < TICKS_OF_A_DAY


# What it asks.


class WeakCredentials:
    """alice at a client that knows keys of 56 bits only."""

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How she authenticates at a level."""
        kind = AuthenticationType.RPC_C_AUTHN_WINNT
        return Authentication(kind, level, partial(self._begin, level))

    @staticmethod
    def _begin(level: AuthenticationLevel) -> NtlmInitiator:
        weak = NtlmInitiator(NtlmCredentials("alice", PASSWORD, minimum_bits=56), level)
        weak._asked &= ~Flag.NTLMSSP_NEGOTIATE_128
        return weak


def test_a_key_of_56_bits_needs_the_switch_which_is_told(
    queue_manager: PrivateQueueManager,
) -> None:
    assert not logs_on(queue_manager, WeakCredentials())
    assert not entries(queue_manager, "a switch is on")
    weak = BASE + '[security]\nminimum_ntlm = "56"\n'
    with private_queue_manager(configuration=weak) as other:
        other.run("user", "add", "alice", "--password-stdin", input=PASSWORD)
        (told,) = entries(other, "a switch is on")
        assert told["setting"] == "security.minimum_ntlm"
        assert logs_on(other, WeakCredentials())
        assert logs_on(other, NtlmCredentials("alice", PASSWORD))


# What its log keeps.


@pytest.mark.parametrize("spnego", [False, True], ids=["NTLM", "SPNEGO"])
@pytest.mark.parametrize("password", [PASSWORD, "a guess"], ids=["right", "wrong"])
def test_the_log_says_who_logged_on_or_tried(
    queue_manager: PrivateQueueManager, spnego: bool, password: str
) -> None:
    right = password == PASSWORD
    event = "a caller logged on" if right else "an authentication failed"
    before = len(entries(queue_manager, event))
    credentials: Credentials = NtlmCredentials("Alice", password, "CORP")
    if spnego:
        credentials = SpnegoCredentials((credentials,))
    assert logs_on(queue_manager, credentials) is right
    (entry,) = entries(queue_manager, event)[before:]
    claimed = entry["account"], entry["domain"], entry["workstation"]
    assert claimed == ("Alice", "CORP", socket.gethostname().upper())
    assert entry["peer"].startswith("127.0.0.1:")
    assert entry.get("identity") == ("alice" if right else None)
    assert right or entry["reason"] == "NTLM: wrong password"
    assert entry["authentication_level"] == "RPC_C_AUTHN_LEVEL_PKT_PRIVACY"
    assert entry["level"] == "info"
    assert password not in queue_manager.log


def test_the_log_has_one_line_for_a_logon_that_fails(queue_manager: PrivateQueueManager) -> None:
    assert not logs_on(queue_manager, NtlmCredentials("mallory", "a guess"))
    told = entries(queue_manager, "an authentication failed")
    (entry,) = [each for each in told if each["account"] == "mallory"]
    assert entry["reason"] == "NTLM: no such account"
    broken = entries(queue_manager, "the protocol was broken")
    assert entry["peer"] not in [each["peer"] for each in broken]


# Keys that lie open.


@pytest.fixture
def open_keytab(tmp_path: Path) -> Path:
    keytab = tmp_path / "keytab"
    write_keytab(keytab)
    keytab.chmod(0o644)
    return keytab


SENTENCE = "others than its owner may use the file; chmod 600 helps"


def test_it_does_not_start_with_keys_that_others_may_read(open_keytab: Path) -> None:
    configuration = BASE + f'[security]\nkeytab = "{open_keytab}"\n'
    with (
        pytest.raises(StartFailedError, match=r"exit status [1-9]") as caught,
        private_queue_manager(configuration=configuration),
    ):
        raise AssertionError("it has started")
    said = str(caught.value)
    assert said.count(SENTENCE) == 1
    assert str(open_keytab) in said
    assert "Traceback" not in said


def test_a_reload_with_keys_that_others_may_read_changes_nothing(
    queue_manager: PrivateQueueManager, open_keytab: Path
) -> None:
    security = f'[security]\nntlm = false\nkeytab = "{open_keytab}"\n'
    said = queue_manager.reload(BASE + security)
    assert said.count(SENTENCE) == 1
    assert "Traceback" not in said
    assert logs_on(queue_manager, NtlmCredentials("alice", PASSWORD))
    queue_manager.reload(BASE)
