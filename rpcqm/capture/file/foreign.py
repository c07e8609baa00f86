"""Files that are captures of other kinds, and the command that makes one of them that is read."""

import shlex
from pathlib import Path

_EDITCAP = "editcap -F pcapng {file} {other}"
_KINDS = (
    (b"RTSS", "a file of Network Monitor 1", _EDITCAP),
    (b"snoop\0\0\0", "a file of snoop", _EDITCAP),
    (b"btsnoop\0", "a file of btsnoop", _EDITCAP),
    (b"TRSNIFF data", "a file of Sniffer", _EDITCAP),
    (b"XCP\0", "a file of NetXray or Sniffer", _EDITCAP),
    (b"ObserverPktBuf", "a file of Observer", _EDITCAP),
    (b"\x7fver", "a file of Peek", _EDITCAP),
    (b"\xaa\xaa\xaa\xaa", "a file of 5View", _EDITCAP),
    (b"NetS", "a trace of NetScaler", _EDITCAP),
    (b"\xa1\xb2\xcd\x34", "a pcap file with longer records", _EDITCAP),
    (b"\x34\xcd\xb2\xa1", "a pcap file with longer records", _EDITCAP),
    (b"BZh", "packed by bzip2", "bunzip2 --keep {file}"),
    (b"\xfd7zXZ\0", "packed by xz", "unxz --keep {file}"),
    (b"\x04\x22\x4d\x18", "packed by lz4", "lz4 -d {file}"),
    (b"PK\3\4", "an archive of zip", "unzip {file}"),
)
_OF_WINDOWS = "pktmon etl2pcap {file} --out {other}"


def what_it_is(path: Path, head: bytes) -> str:
    """A sentence about a file that is no capture that is read, with what to do if that is known."""
    for magic, kind, command in _KINDS:
        if head.startswith(magic):
            return _sentence(path, kind, command)
    if path.suffix.lower() == ".etl":
        return _sentence(path, "a trace of Windows", _OF_WINDOWS)
    what = "is empty" if not head else f"begins with {head[:4].hex(' ')}"
    return f"{path} is no capture of pcap, pcapng or Network Monitor 2: it {what}."


def _sentence(path: Path, kind: str, command: str) -> str:
    other = shlex.quote(str(path.with_suffix(".pcapng")))
    told = command.format(file=shlex.quote(str(path)), other=other)
    return f"{path} is {kind}, which is not read; convert it by: {told}"
