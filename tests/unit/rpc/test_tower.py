"""Protocol towers against impacket's, and what is not one."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from impacket.dcerpc.v5 import epm

from rpcqm.base.errors import DecodeError
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR
from rpcqm.rpc.tower import Floor, Tower, tcp_tower

INTERFACE = SyntaxId(UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28"), 1, 0)
TOWER = tcp_tower(INTERFACE, NDR, "192.0.2.7", 2103)
OCTETS = bytes.fromhex(
    "0500"
    "1300 0d dd34911a397bba45ad8844d01ca47f28 0100 0200 0000"
    "1300 0d 045d888aeb1cc9119fe808002b104860 0200 0200 0000"
    "0100 0b 0200 0000"
    "0100 07 0200 0837"
    "0100 09 0400 c0000207".replace(" ", "")
)
"""Five floors, laid out as [C706] appendix L says: the port and the host are big-endian."""


def test_pack() -> None:
    assert TOWER.pack().hex() == OCTETS.hex()


def test_unpack() -> None:
    tower = Tower.unpack(OCTETS)
    assert tower == TOWER
    assert tower.protocols == (0x0B, 0x07, 0x09)
    assert tower.tcp_port == 2103


def test_impacket_reads_it() -> None:
    floors = epm.EPMTower(OCTETS)["Floors"]
    assert epm.PrintStringBinding(floors) == "ncacn_ip_tcp:192.0.2.7[2103]"
    assert "1A9134DD-7B39-45BA-AD88-44D01CA47F28" in str(floors[0])


@pytest.mark.parametrize("host", ["::1", "localhost", "0.0.0.0"])
def test_a_host_without_an_ipv4_address_is_left_out(host: str) -> None:
    assert tcp_tower(INTERFACE, NDR, host, 1).floors[2].right == bytes(4)


def test_a_tower_without_tcp_has_no_port() -> None:
    assert Tower(INTERFACE, NDR, (Floor(0x0F, b"", b"pipe\0"),)).tcp_port is None


def test_a_tower_cut_at_any_octet_is_refused() -> None:
    for length in range(len(OCTETS)):
        with pytest.raises(DecodeError):
            Tower.unpack(OCTETS[:length])


@pytest.mark.parametrize(
    ("position", "octet"),
    [
        pytest.param(0, 7, id="seven floors"),
        pytest.param(0, 1, id="one floor"),
        pytest.param(4, 0x0C, id="no interface"),
        pytest.param(2, 0x12, id="a short interface"),
        pytest.param(3, 0xFF, id="a floor longer than the tower"),
    ],
)
def test_what_is_no_tower_is_refused(position: int, octet: int) -> None:
    wrong = bytearray(OCTETS)
    wrong[position] = octet
    with pytest.raises(DecodeError):
        Tower.unpack(bytes(wrong))


def test_a_floor_without_a_protocol_is_refused() -> None:
    with pytest.raises(DecodeError):
        Tower.unpack(b"\x03\0" + OCTETS[2:52] + b"\0\0\0\0")


floors = st.lists(
    st.builds(Floor, st.integers(0, 255), st.binary(max_size=5), st.binary(max_size=5)), max_size=4
).map(tuple)


@given(floors=floors, major=st.integers(0, 65535), minor=st.integers(0, 65535))
def test_a_tower_survives_the_wire(floors: tuple[Floor, ...], major: int, minor: int) -> None:
    tower = Tower(SyntaxId(INTERFACE.uuid, major, minor), NDR, floors)
    assert Tower.unpack(tower.pack()) == tower
