#!/usr/bin/env bash
# What a pattern of octets means to google-re2.
#
# Versions    google-re2 1.1.20251105, Python 3.11
# Guess       As with the re that it takes the place of, a pattern of bytes is matched octet by octet.
# Behaviour   Octets are taken for UTF-8, pattern and text alike: `.` is two octets where two make a
#             letter, matches nothing that is no UTF-8, and a pattern with an octet such as FF is an
#             error. Options.Encoding.LATIN1 makes octets of them.
# Hurt        Whoever looks through packets or files by re2 because patterns of strangers cannot take
#             for ever there: matches are missed, and positions counted from them are wrong, where a
#             length or a number happens to look like a letter.
# Seen        re [195, 169, 255], re2 [195169], re2 with LATIN1 [195, 169, 255]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check google-re2==1.1.20251105
cat >"$folder/try.py" <<'PYTHON'
import re
import sys

import re2

OCTETS = b"\xc3\xa9\xff"


def told(found):
    return "[" + ", ".join("".join(map(str, match)) for match in found) + "]"


options = re2.Options()
options.encoding = re2.Options.Encoding.LATIN1
answers = (
    told(re.findall(b".", OCTETS)),
    told(re2.findall(b".", OCTETS)),
    told(re2.compile(b".", options).findall(OCTETS)),
)
print("re {}, re2 {}, re2 with LATIN1 {}".format(*answers))
sys.exit(answers != ("[195, 169, 255]", "[195169]", "[195, 169, 255]"))
PYTHON
cd "$folder"
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
