"""What strangers may ask for over RPC costs a few steps for each octet that they send (G512).

What is counted are calls of functions, for a request that has come before, as attackers send it.
"""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.types.epm import twr_t
from rpcqm.rpc import pdu
from rpcqm.rpc.endpoint_mapper import EPM, NIL, InquiryType, VersionOption
from rpcqm.rpc.presentation import NDR, NDR64
from rpcqm.rpc.security.context import PKT_PRIVACY
from rpcqm.rpc.security.ntlm import NtlmInitiator, stored_hash
from rpcqm.rpc.security.providers import security_providers
from rpcqm.rpc.security.spnego_tokens import NegTokenInit
from rpcqm.rpc.tower import tcp_tower
from tests.support.accounts import NT_HASH, TestAccounts
from tests.support.rpc.probe import PROBE, Rig, Wire, bind, element, request
from tests.support.rpc.secured import ALICE
from tests.support.work import steps
from tests.unit.rpc.test_endpoint_mapper import MAPPER, NULL, MapperRig

FREE, PER_OCTET = 1_000, 8
"""Steps of any request, and of each octet besides."""
FRAGMENT = 5_840
UNKNOWN = pdu.SyntaxId(UUID(int=99), 1)
_ELEMENT, _SYNTAX, _HEAD = 44, 20, 120
"""Octets of a presentation context with one syntax, of a further one, and about a bind."""


def cost(connect: Callable[[], Wire], octets: bytes) -> float:
    """Steps beyond those that are free, for each octet; the first time does not count."""
    for wire in (connect(), connect()):
        assert wire.send(octets)
    wire = connect()
    return (steps(lambda: wire.send(octets)) - FREE) / len(octets)


def elements(count: int, syntax: pdu.SyntaxId = PROBE) -> tuple[pdu.ContextElement, ...]:
    return tuple(element(number, syntax) for number in range(count))


MANY = (FRAGMENT - _HEAD) // _ELEMENT
OTHERS = tuple(pdu.SyntaxId(UUID(int=each), 1) for each in range((FRAGMENT - _HEAD) // _SYNTAX - 4))

BINDS = {
    "one context": bind(),
    "many contexts": bind(p_context_elem=elements(MANY)),
    "many of unknown interfaces": bind(p_context_elem=elements(MANY, UNKNOWN)),
    "many syntaxes": bind(p_context_elem=(element(0, transfers=(*OTHERS[:250], NDR64, NDR)),)),
    "the same context again and again": bind(p_context_elem=(element(),) * MANY),
}


@pytest.mark.parametrize("octets", BINDS.values(), ids=BINDS)
def test_a_bind_costs_few_steps(rig: Rig, octets: bytes) -> None:
    assert len(octets) <= FRAGMENT
    assert cost(rig.connect, octets) < PER_OCTET


def with_token(kind: int, token: bytes) -> bytes:
    return bind(auth=pdu.SecurityTrailer(kind, PKT_PRIVACY, 0, token))


def challenges() -> dict[str, bytes]:
    """First tokens of strangers; those that are no tokens are refused."""
    begun = NtlmInitiator(ALICE, PKT_PRIVACY).step(b"")
    names = ["1.3.6.1.4.1.311.2.2.30", "1.3.6.1.4.1.311.2.2.10"]
    return {
        "NTLM": with_token(10, begun),
        "NTLM with a tail": with_token(10, begun + bytes(10_000)),
        "SPNEGO": with_token(9, NegTokenInit(names, mech_token=begun).pack()),
        "SPNEGO with many names": with_token(
            9, NegTokenInit([f"1.3.{each}" for each in range(110)], mech_token=begun).pack()
        ),
        "SPNEGO with too many names": with_token(
            9, NegTokenInit([f"1.3.{each}" for each in range(2_000)], mech_token=begun).pack()
        ),
        "no token": with_token(9, b"\x60\x82" + bytes(10_000)),
    }


@pytest.mark.parametrize("octets", challenges().values(), ids=challenges())
def test_a_challenge_costs_few_steps(tmp_path: Path, octets: bytes) -> None:
    """And reads no file of accounts."""
    accounts = TestAccounts(tmp_path)
    rig = Rig(providers=security_providers(accounts))
    accounts.user_file.unlink()
    assert cost(rig.connect, octets) < PER_OCTET


def test_a_guess_costs_few_steps_however_many_accounts_there_are(tmp_path: Path) -> None:
    """And another file counts at once."""
    path = tmp_path / "accounts"

    def write(*names: str) -> None:
        line = f"{{}}:1000:{'0' * 32}:{NT_HASH}:[U          ]:LCT-00000000\n"
        path.write_text("".join(map(line.format, names)))

    write(*(f"user{number}" for number in range(5_000)))
    assert stored_hash(path, "mallory", "") is None
    assert steps(lambda: stored_hash(path, "mallory", "")) < 100
    assert stored_hash(path, "USER4999", "here") == bytes.fromhex(NT_HASH)
    write("mallory")
    assert stored_hash(path, "mallory", "") == bytes.fromhex(NT_HASH)


def lookups() -> dict[str, bytes]:
    asked = {
        "inquiry_type": InquiryType.RPC_C_EP_ALL_ELTS,
        "object": None,
        "Ifid": None,
        "vers_option": VersionOption.RPC_C_VERS_ALL,
        "entry_handle": NULL,
    }
    tower = tcp_tower(PROBE, NDR, "0.0.0.0", 0).pack()
    long = bytes([200, 0]) + tower[2:] + bytes(1_800)
    found = {}
    for name, entries in (("a lookup of all", 500), ("a page of one", 1), ("a page of none", 0)):
        found[name] = _request("ept_lookup", **asked, max_ents=entries)
    for name, octets in (("a map", tower), ("a tower that is none", long)):
        counted = twr_t(tower_length=len(octets), tower_octet_string=octets)
        found[name] = _request(
            "ept_map", obj=NIL, map_tower=counted, entry_handle=NULL, max_towers=500
        )
    return found


def _request(name: str, **values: object) -> bytes:
    operation = EPM.operation(name)
    stub = operation.encode_request(TransferSyntax.NDR, operation.request_class(**values))
    parts = [stub[at : at + FRAGMENT // 2] for at in range(0, len(stub), FRAGMENT // 2)]
    last = len(parts) - 1
    return b"".join(
        request(operation.opnum, part, pfc_flags=(not at) | (at == last) << 1)
        for at, part in enumerate(parts)
    )


@pytest.mark.parametrize("octets", lookups().values(), ids=lookups())
def test_a_question_to_the_endpoint_mapper_costs_few_steps(octets: bytes) -> None:
    rig = MapperRig()

    def connect() -> Wire:
        wire = rig.connect()
        wire.bind(p_context_elem=(element(0, MAPPER),))
        return wire

    assert cost(connect, octets) < PER_OCTET
