#!/usr/bin/env bash
# In which order mergecap puts packets of one moment.
#
# Versions    mergecap of Wireshark 4.0 (Debian package wireshark-common)
# Guess       Packets with equal times stay in the order of the files on the command line.
# Behaviour   Of two files whose next packets have equal times the later one on the command line goes
#             first, as long as its packets have that time.
# Hurt        Whoever merges the captures of two sides of a link, whose times have microseconds or a
#             coarser clock: with the client's file first an answer comes before its question, and what
#             pairs them finds questions without answers.
# Seen        mergecap one two: two's packets 3 4, then one's 1 2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v mergecap >/dev/null || { echo "needs mergecap (Debian package wireshark-common)" >&2; exit 2; }
cat >"$folder/try.py" <<'PYTHON'
import struct
import subprocess
import sys

SECOND = 1_700_000_000


def write(name, *marks):
    """A pcap file of frames of one moment, each with a mark as its last octet."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    with open(name, "wb") as file:
        file.write(head)
        for mark in marks:
            frame = bytes(12) + b"\x08\x00" + bytes(45) + bytes([mark])
            file.write(struct.pack("<IIII", SECOND, 0, len(frame), len(frame)) + frame)


def marks(name):
    content = open(name, "rb").read()[24:]
    return [content[place + 75] for place in range(0, len(content), 76)]


write("one", 1, 2)
write("two", 3, 4)
subprocess.run(["mergecap", "-F", "pcap", "-w", "both", "one", "two"], check=True)
found = marks("both")
print(f"mergecap one two: {' '.join(map(str, found))}")
sys.exit(found != [3, 4, 1, 2])
PYTHON
cd "$folder"
python3 try.py || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
