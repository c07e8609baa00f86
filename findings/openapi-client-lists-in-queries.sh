#!/usr/bin/env bash
# How a client of openapi-python-client sends a list in the query.
#
# Versions    openapi-python-client 0.29.1, httpx 0.28.1, Python 3.11
# Guess       As its description says: `explode: false` of a list means `?states=open,held`.
# Behaviour   Neither `style` nor `explode` is looked at: every list is sent as several parameters.
# Hurt        Whoever makes a client for a server that takes such lists: it takes one of the elements,
#             the first or the last as its library has it, answers 200, and the rest is left out of
#             what was asked, or was to be deleted, without a word.
# Seen        explode true: states=open&states=held; explode false: states=open&states=held
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


def sent(explode):
    """The query for a list of two."""
    states = {"type": "array", "items": {"type": "string"}}
    parameter = {"name": "states", "in": "query", "style": "form", "explode": explode, "schema": states}
    get = {"operationId": "find", "parameters": [parameter], "responses": {"204": {"description": ""}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "a test", "version": "1"},
        "paths": {"/things": {"get": get}},
    }
    Path("openapi.json").write_text(json.dumps(document))
    command = Path(sys.executable).with_name("openapi-python-client")
    name = f"exploding_{explode}".lower()
    words = ("generate", "--path", "openapi.json", "--meta", "none", "--output-path", name)
    subprocess.run([command, *words], check=True, capture_output=True)
    made = import_module(name)
    import httpx

    client = made.Client(base_url="http://host")
    seen = []

    def answer(request):
        seen.append(request.url.query.decode())
        return httpx.Response(204)

    client.set_httpx_client(httpx.Client(base_url="http://host", transport=httpx.MockTransport(answer)))
    import_module(f"{name}.api.default.find").sync_detailed(client=client, states=["open", "held"])
    return seen[0]


sys.path.insert(0, ".")
exploding, joined = sent(True), sent(False)
print(f"explode true: {exploding}; explode false: {joined}")
sys.exit((exploding, joined) != ("states=open&states=held",) * 2)
PYTHON
cd "$folder"
"$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
