#!/usr/bin/env bash
# What zstandard's reader says of a file that was cut.
#
# Versions    zstandard 0.25.0, Python 3.11
# Guess       As gzip's reader: an error where the stream ends before its end.
# Behaviour   zstandard.open(…).read() gives what it has up to the last whole block, and no error; so
#             do stream_reader, copy_stream and whatever else reads piece by piece. Only decompress(),
#             for which all must be in memory, refuses it.
# Hurt        Whoever reads captures or logs that were compressed by zstd and whose copying was
#             interrupted: the end is missing, and every count and every report looks complete.
# Seen        gzip: EOFError; zstandard: 917504 of 1024000 octets
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check zstandard==0.25.0
cat >"$folder/try.py" <<'PYTHON'
import gzip
import io
import sys

import zstandard

WHOLE = bytes(range(256)) * 4000


def told(opened):
    try:
        return f"{len(opened.read())} of {len(WHOLE)} octets"
    except Exception as error:
        return type(error).__name__


by_gzip = told(gzip.open(io.BytesIO(gzip.compress(WHOLE)[:-3])))
compressed = zstandard.ZstdCompressor().compress(WHOLE)[:-3]
by_zstandard = told(zstandard.open(io.BytesIO(compressed), "rb"))
print(f"gzip: {by_gzip}; zstandard: {by_zstandard}")
sys.exit((by_gzip, by_zstandard) != ("EOFError", f"917504 of {len(WHOLE)} octets"))
PYTHON
cd "$folder"
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
