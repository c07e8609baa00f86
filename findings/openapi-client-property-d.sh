#!/usr/bin/env bash
# Whether a model that openapi-python-client makes may have a property called `d`.
#
# Versions    openapi-python-client 0.29.1, httpx 0.28.1, Python 3.11
# Guess       Any property may; names that Python or the client itself has are changed.
# Behaviour   `from_dict` of the model keeps the object that it reads in a variable `d`, and takes each
#             property out of it into a variable of the property's name. From `d` on there is nothing to
#             take from: every answer with another property behind it is an AttributeError.
# Hurt        Whoever makes a client for an interface with the letters a, b, c and d, a matrix or the
#             sides of a figure: making it reports nothing, and no answer can be read.
# Seen        c: read; d: AttributeError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openapi-python-client==0.29.1 httpx==0.28.1
cat >"$folder/try.py" <<'PYTHON'
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

TEXT = {"type": "string"}


def told(name):
    """Whether an answer is read whose model has a property of that name and one behind it."""
    model = {"type": "object", "required": [name, "last"], "properties": {name: TEXT, "last": TEXT}}
    answer = {"200": {"description": "", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "a test", "version": "1"},
        "paths": {"/thing": {"get": {"operationId": "thing", "responses": answer}}},
        "components": {"schemas": {"Thing": model}},
    }
    Path("openapi.json").write_text(json.dumps(document))
    command = Path(sys.executable).with_name("openapi-python-client")
    words = ("generate", "--path", "openapi.json", "--meta", "none", "--output-path", f"of_{name}")
    subprocess.run([command, *words], check=True, capture_output=True)
    thing = import_module(f"of_{name}.models").Thing
    try:
        thing.from_dict({name: "x", "last": "y"})
    except Exception as error:
        return type(error).__name__
    return "read"


sys.path.insert(0, ".")
c, d = told("c"), told("d")
print(f"c: {c}; d: {d}")
sys.exit((c, d) != ("read", "AttributeError"))
PYTHON
cd "$folder"
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
