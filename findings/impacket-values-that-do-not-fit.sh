#!/usr/bin/env bash
# What impacket sends for a number that its field cannot hold.
#
# Versions    impacket 0.13.1, Python 3.11
# Guess       VARIANT_BOOL takes -1, which is VARIANT_TRUE, and LONG takes 0x80070005, an HRESULT
#             as it is printed everywhere; else packing them is an error.
# Behaviour   VARIANT_BOOL is an unsigned number of 16 bits there, LONG a signed one of 32. Whatever
#             the field cannot hold becomes its default without a word: zero, which is False and S_OK.
# Hurt        Whoever sets a property of a COM object to True by the value that the documentation of
#             automation has, or writes a server that answers with a failure: the other side gets False,
#             or success, and no exception tells.
# Seen        truth -1 is sent as 0000, status 0x80070005 as 00000000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check impacket==0.13.1
cat >"$folder/try.py" <<'PYTHON'
import sys

from impacket.dcerpc.v5.dcom.oaut import VARIANT_BOOL
from impacket.dcerpc.v5.dtypes import LONG
from impacket.dcerpc.v5.ndr import NDRCALL


class Truth(NDRCALL):
    opnum = 0
    structure = (("value", VARIANT_BOOL),)


class Status(NDRCALL):
    opnum = 1
    structure = (("value", LONG),)


def sent(call, value):
    try:
        call["value"] = value
        return call.getData().hex()
    except Exception as error:
        return type(error).__name__


truth, status = sent(Truth(), -1), sent(Status(), 0x80070005)
print(f"truth -1 is sent as {truth}, status 0x80070005 as {status}")
sys.exit((truth, status) != ("0000", "00000000"))
PYTHON
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
