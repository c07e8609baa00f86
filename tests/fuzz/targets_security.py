"""Targets of authentication: live handshakes of both sides, and verification trailers.

Handshakes draw no random numbers and know no time here, so that real messages stay real, and an
input that did harm does it again.
"""

import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from rpcqm.base.errors import DecodeError, RpcFault
from rpcqm.codec.security.passwords import nt_hash
from rpcqm.rpc.call import Call
from rpcqm.rpc.presentation import NDR
from rpcqm.rpc.security import ntlm, verification
from rpcqm.rpc.security import ntlm_messages as messages
from rpcqm.rpc.security.context import PKT_PRIVACY, AuthenticationError, Handshake
from rpcqm.rpc.security.ntlm import NtlmAcceptor, NtlmCredentials, NtlmInitiator, NtlmProvider
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags
from rpcqm.rpc.security.spnego import (
    KERBEROS,
    NTLM,
    SpnegoAcceptor,
    SpnegoInitiator,
    SpnegoProvider,
)
from rpcqm.rpc.security.spnego_tokens import NegTokenInit, NegTokenResp, unpack_token
from tests.fuzz import captures
from tests.fuzz.target import Run, Target, Violation
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc import silver_ticket
from tests.support.rpc.probe import PROBE

CREDENTIALS = NtlmCredentials("alice", PASSWORD)
NOW = b"now, now"
BLANK_KEY = bytes(16)


@contextmanager
def _accounts() -> Iterator[TestAccounts]:
    """Accounts in a world in which every random number is the same, and time stands still."""
    fixed = SimpleNamespace(urandom=lambda length: bytes(range(1, length + 1)))
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(ntlm, "os", fixed))
        stack.enter_context(mock.patch.object(ntlm, "_now", return_value=NOW))
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        yield TestAccounts(Path(directory))


# NTLM, the server's side.

BEGINNING, SIGNED, UNSIGNED, NOBODY = range(4)
"""The first octet of an input: a NEGOTIATE message, or the last message of one of three clients."""


def _begun(accounts: TestAccounts) -> tuple[NtlmAcceptor, NtlmInitiator, bytes]:
    """A server that has sent its challenge, the client, and the challenge."""
    client = NtlmInitiator(CREDENTIALS, PKT_PRIVACY)
    server = NtlmProvider(accounts).accept(PKT_PRIVACY)
    return server, client, server.step(client.step(b""))


def _without_code(challenge: bytes) -> bytes:
    """The last message of a client that makes no integrity code."""
    seen = messages.read_challenge(challenge)
    key = messages.response_key(nt_hash(PASSWORD), "alice", "")
    proved = messages.pack_client_challenge(NOW, bytes(8), seen.target_info)
    response = messages.proof_of(key, seen.server_challenge, proved) + proved
    return messages.pack_authenticate(
        messages.Authenticate(seen.flags, b"", response, "", "alice", "HOST", BLANK_KEY, 0)
    )


def _from_nobody(challenge: bytes) -> bytes:
    flags = messages.read_challenge(challenge).flags
    return messages.pack_authenticate(
        messages.Authenticate(flags, b"\0", b"", "", "", "HOST", BLANK_KEY, 0)
    )


def _ntlm_seeds() -> Iterable[bytes]:
    with _accounts() as accounts:
        _, client, challenge = _begun(accounts)
        yield bytes([BEGINNING]) + NtlmInitiator(CREDENTIALS, PKT_PRIVACY).step(b"")
        yield bytes([SIGNED]) + client.step(challenge)
        yield bytes([UNSIGNED]) + _without_code(challenge)
        yield bytes([NOBODY]) + _from_nobody(challenge)
    for token in captures.tokens():
        yield bytes([BEGINNING]) + token
        yield bytes([SIGNED]) + token


@contextmanager
def _ntlm() -> Iterator[Run]:
    with _accounts() as accounts:
        challenged, client, challenge = _begun(accounts)
        genuine = client.step(challenge)

        def run(octets: bytes) -> Hashable:
            chosen, token = octets[0] % 4 if octets else BEGINNING, octets[1:]
            if chosen == BEGINNING:
                return _strong(NtlmProvider(accounts).accept(PKT_PRIVACY).step(token))
            server = copy(challenged)
            server.step(token)
            if not server.peer().is_anonymous and chosen == SIGNED and token != genuine:
                promised = messages.read_authenticate(token).nt_response
                if promised == messages.read_authenticate(genuine).nt_response:
                    raise Violation("a message with an integrity code was changed")
            return server.complete, server.peer().name, server.signs_mechanisms

        yield run


def _strong(challenge: bytes) -> Hashable:
    flags = NegotiateFlags(messages.read_challenge(challenge).flags)
    needed = (
        NegotiateFlags.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
        | NegotiateFlags.NTLMSSP_NEGOTIATE_128
    )
    if flags & needed != needed:
        raise Violation("a weak challenge")
    return int(flags)


# SPNEGO, both sides.

KINDS = ([NTLM], [KERBEROS, NTLM])
"""What clients offer; of the second kind the server asks for a signature."""


def _victim(mechanisms: list[str]) -> SpnegoInitiator:
    """A client of NTLM, whose Kerberos never gets beyond its first token."""
    made: dict[str, Any] = {
        KERBEROS: SimpleNamespace(step=lambda token: b"\x6e\x03abc", complete=False),
        NTLM: NtlmInitiator(CREDENTIALS, PKT_PRIVACY),
    }
    return SpnegoInitiator([(name, made[name]) for name in mechanisms])


def _acceptor(accounts: TestAccounts) -> SpnegoAcceptor:
    return SpnegoProvider({NTLM: NtlmProvider(accounts)}).accept(PKT_PRIVACY)


def _negotiated(accounts: TestAccounts, mechanisms: list[str]) -> tuple[list[bytes], list[bytes]]:
    """All that a client and a server say to each other."""
    client, server = _victim(mechanisms), _acceptor(accounts)
    said: tuple[list[bytes], list[bytes]] = [], []
    token = client.step(b"")
    while not client.complete:
        said[0].append(token)
        said[1].append(server.step(token))
        token = client.step(said[1][-1])
    return said


def _stages(accounts: TestAccounts, side: int) -> list[tuple[list[str], list[bytes], bytes]]:
    """What is offered, what one side has heard, and what it would hear next: every moment."""
    moments = []
    for mechanisms in KINDS:
        heard = _negotiated(accounts, mechanisms)[side]
        moments += [(mechanisms, heard[:index], heard[index]) for index in range(len(heard))]
    return moments


def _spnego_seeds(side: int) -> Callable[[], Iterable[bytes]]:
    def seeds() -> Iterable[bytes]:
        with _accounts() as accounts:
            for number, (_, _, token) in enumerate(_stages(accounts, side)):
                yield bytes([number]) + token

    return seeds


def _parts(token: bytes) -> tuple[bytes, bytes]:
    """The mechanism's token and the signature in a genuine token."""
    message = unpack_token(token)
    if isinstance(message, NegTokenInit):
        return message.mech_token or b"", b""
    assert isinstance(message, NegTokenResp)
    return message.response_token or b"", message.mech_list_mic or b""


def _check_whole(octets: bytes, genuine: bytes) -> None:
    if not all(part in octets for part in _parts(genuine)):
        raise Violation("a negotiation ends that was changed")


@contextmanager
def _spnego_server() -> Iterator[Run]:
    with _accounts() as accounts:
        moments = _stages(accounts, 0)

        def run(octets: bytes) -> Hashable:
            number = octets[0] % len(moments) if octets else 0
            _, heard, genuine = moments[number]
            server = _acceptor(accounts)
            for token in heard:
                server.step(token)
            server.step(octets[1:])
            if server.complete and not server.peer().is_anonymous:
                _check_whole(octets, genuine)
            return number, server.complete

        yield run


@contextmanager
def _spnego_client() -> Iterator[Run]:
    with _accounts() as accounts:
        moments = _stages(accounts, 1)

        def run(octets: bytes) -> Hashable:
            number = octets[0] % len(moments) if octets else 0
            mechanisms, heard, genuine = moments[number]
            client = _victim(mechanisms)
            for token in (b"", *heard):
                client.step(token)
            client.step(octets[1:])
            if client.complete:
                _check_whole(octets, genuine)
            return number, client.complete

        yield run


# Verification trailers.


def _trailers() -> Iterable[bytes]:
    """Requests as they should be, and with other commands."""
    pcontext = b"\x02\x00\x28\x00" + PROBE.pack() + NDR.pack()
    header = bytes.fromhex("03001000 00000000 10000000 01000000 0000 0100")
    bits = bytes.fromhex("01000400 01000000")
    for commands in ((bits,), (pcontext,), (header,), (bits, header, pcontext), (b"\x09\x80\0\0",)):
        last = bytearray(commands[-1])
        last[1] |= 0x40
        whole = b"".join((*commands[:-1], bytes(last)))
        yield b"octets!!" + verification.SIGNATURE + whole


@contextmanager
def _verified() -> Iterator[Run]:
    context = SimpleNamespace(abstract_syntax=PROBE, transfer_syntax=NDR, context_id=0)
    association = SimpleNamespace(signs_headers=True)
    call = SimpleNamespace(
        context=context, association=association, big_endian=False, call_id=1, opnum=1
    )

    def run(octets: bytes) -> Hashable:
        at = verification.place(octets)
        if at >= 0:
            verification.verify(octets[at:], cast(Call, call))
        return at >= 0

    yield run


# Kerberos, the server's side.


def _kerberos_seeds() -> Iterable[bytes]:
    """The first token and the third, in a frame and without it."""
    request = silver_ticket.request("alice")
    for token in (request, _framed(request), *captures.tokens()):
        yield b"\0" + token
        yield b"\1" + token
    yield b"\1" + bytes.fromhex("6f463044a003020105a10302010f") + bytes(58)


def _framed(request: bytes) -> bytes:
    inner = bytes.fromhex("06092a864886f712010202") + b"\x01\0" + request
    return b"\x60\x82" + len(inner).to_bytes(2, "big") + inner


def _expect_answer(server: Handshake, request: bytes) -> None:
    try:
        server.step(request)
    except AuthenticationError as error:
        raise Violation("a good request is not answered") from error


@contextmanager
def _kerberos() -> Iterator[Run]:
    """Nobody here knows what the third leg would have to be."""
    from rpcqm.rpc.security.kerberos import KerberosProvider

    with tempfile.TemporaryDirectory() as directory:
        keytab = Path(directory) / "keytab"
        silver_ticket.write_keytab(keytab)
        provider = KerberosProvider(TestAccounts(Path(directory)), keytab, silver_ticket.PRINCIPAL)
        provider.recorded = provider.unframed  # else no request would be good twice
        request = silver_ticket.request("alice")

        def run(octets: bytes) -> Hashable:
            server = provider.accept(PKT_PRIVACY)
            second = bool(octets) and bool(octets[0] & 1)
            if second:
                _expect_answer(server, request)
            answer = server.step(octets[1:])
            if server.complete:
                raise Violation("a handshake ends without a proof")
            return second, bool(answer)

        yield run


TARGETS: tuple[Target, ...] = (
    Target("ntlm-live", _ntlm_seeds, _ntlm, (AuthenticationError,), share=2),
    Target("spnego-server", _spnego_seeds(0), _spnego_server, (AuthenticationError,), share=2),
    Target("spnego-client", _spnego_seeds(1), _spnego_client, (AuthenticationError,), share=2),
    Target("verification", _trailers, _verified, (DecodeError, RpcFault), share=2),
)
LEFT_OUT = ""
if find_spec("gssapi") is None:
    LEFT_OUT = "kerberos is left out: the package gssapi is not installed"
else:
    TARGETS += (Target("kerberos", _kerberos_seeds, _kerberos, (AuthenticationError,), share=2),)
