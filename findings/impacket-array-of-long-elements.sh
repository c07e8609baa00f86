#!/usr/bin/env bash
# Whether impacket reads the array that it has written.
#
# Versions    impacket 0.13.1, Python 3.11
# Guess       A call with a conformant array of numbers of 64 bits as a parameter comes back as it was.
# Behaviour   Four octets that do not belong there are written between the count of the array and its
#             first element, which is aligned already. The reader looks for the element where [C706]
#             has it.
# Hurt        Whoever describes a method with such an array for impacket, say one that takes FILETIMEs or
#             identifiers: requests go out shifted by four octets, and the server refuses them as bad
#             stub data, or does something with other numbers.
# Seen        one element 5 is read as 24354991019
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check impacket==0.13.1
cat >"$folder/try.py" <<'PYTHON'
import sys

from impacket.dcerpc.v5.ndr import NDRCALL, NDRSTRUCT, NDRUHYPER, NDRULONG, NDRUniConformantArray


class Number(NDRSTRUCT):
    structure = (("value", NDRUHYPER),)


class Numbers(NDRUniConformantArray):
    item = Number


class Call(NDRCALL):
    opnum = 0
    structure = (("count", NDRULONG), ("numbers", Numbers))


number = Number()
number["value"] = 5
call = Call()
call["count"], call["numbers"] = 1, [number]
octets = call.getData()
try:
    read = Call(octets)["numbers"][0]["value"]
except Exception as error:
    read = type(error).__name__
print(f"one element 5 is read as {read}")
print(octets.hex(" ", 4))
sys.exit(read != 24354991019)
PYTHON
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
