#!/usr/bin/env bash
# What an iteration over a snapshot of rocksdict sees.
#
# Versions    rocksdict 0.3.29, Python 3.11
# Guess       db.snapshot() is the database as it was then, for a key and for an iteration alike.
# Behaviour   snapshot[key] is as it was. keys(), items(), values() and iter() of the same object go
#             through the database as it is when they begin: what was written since is there, what
#             was deleted since is not.
# Hurt        Whoever copies a database to a file by going through a snapshot while others write, a
#             backup or an export: parts that belong together are of different moments, and no error
#             tells. A checkpoint is one moment.
# Seen        by key 1, by items 2; written since: in keys; deleted since: not in keys
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check rocksdict==0.3.29
cat >"$folder/try.py" <<'PYTHON'
import sys

from rocksdict import Options, Rdict

db = Rdict("database", Options(raw_mode=True))
db[b"changed"] = db[b"deleted"] = b"1"
snapshot = db.snapshot()
db[b"changed"] = b"2"
db[b"written"] = b"1"
del db[b"deleted"]

by_key, by_items = snapshot[b"changed"].decode(), dict(snapshot.items())[b"changed"].decode()
keys = list(snapshot.keys())
written = "in keys" if b"written" in keys else "not in keys"
deleted = "in keys" if b"deleted" in keys else "not in keys"
print(f"by key {by_key}, by items {by_items}; written since: {written}; deleted since: {deleted}")
sys.exit((by_key, by_items, written, deleted) != ("1", "2", "in keys", "not in keys"))
PYTHON
cd "$folder"
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
