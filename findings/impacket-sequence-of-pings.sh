#!/usr/bin/env bash
# Which sequence number impacket's ComplexPing sends.
#
# Versions    impacket 0.13.1, Python 3.11
# Guess       IObjectExporter.ComplexPing(setId, sequenceNum=7) sends 7.
# Behaviour   It sends the identifier of the set, cut to the 16 bits of the field or replaced by zero,
#             and never looks at its argument.
# Hurt        Whoever keeps COM objects alive by it, at a server that drops pings which come out of
#             order, as [MS-DCOM] has it: the same number comes each time, objects that are added later
#             are never pinged, and after six minutes they are gone.
# Seen        sequence 7 of set 5 is sent as 5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check impacket==0.13.1
cat >"$folder/try.py" <<'PYTHON'
import sys

from impacket.dcerpc.v5.dcomrt import IObjectExporter


class Connection:
    """Takes the request instead of a server."""

    def connect(self):
        pass

    def bind(self, interface):
        pass

    def request(self, request):
        return request["SequenceNum"]


sent = IObjectExporter(Connection()).ComplexPing(setId=5, sequenceNum=7, addToSet=[1])
print(f"sequence 7 of set 5 is sent as {sent}")
sys.exit(sent != 5)
PYTHON
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
