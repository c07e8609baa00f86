#!/usr/bin/env bash
# Whether a server of pyspnego takes NTLMv2 of impacket, whose password is right.
#
# Versions    pyspnego 0.12.4, impacket 0.13.1, Python 3.11
# Guess       Both speak NTLMv2, so that the right password logs on.
# Behaviour   The client's part of the proof may end with four octets of zero or without them; the
#             proof covers what was sent. pyspnego does not check it over the octets that came, but
#             over its own writing of what they mean, which has the four octets: impacket's client
#             leaves them out, and is refused as if its password were wrong.
# Hurt        Whoever offers NTLM by pyspnego, say in a test server for clients of Windows' protocols,
#             and lets a script with impacket log on: it looks as if the accounts were wrong.
# Seen        pyspnego's client: accepted, impacket's client: InvalidTokenError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyspnego==0.12.4 impacket==0.13.1
printf 'DOMAIN:alice:secret\n' >"$folder/users"
cat >"$folder/try.py" <<'PYTHON'
import sys

import spnego
from impacket import ntlm


def of_pyspnego(server):
    client = spnego.client("DOMAIN\\alice", "secret", protocol="ntlm")
    server.step(client.step(server.step(client.step())))


def of_impacket(server):
    first = ntlm.getNTLMSSPType1("", "DOMAIN", use_ntlmv2=True)
    challenge = server.step(first.getData())
    last, _ = ntlm.getNTLMSSPType3(first, challenge, "alice", "secret", "DOMAIN", use_ntlmv2=True)
    server.step(last.getData())


def told(log_on):
    server = spnego.server(protocol="ntlm")
    try:
        log_on(server)
    except Exception as error:
        return type(error).__name__
    return "accepted" if server.complete else "not complete"


ours, theirs = told(of_pyspnego), told(of_impacket)
print(f"pyspnego's client: {ours}, impacket's client: {theirs}")
sys.exit(ours != "accepted" or theirs == "accepted")
PYTHON
NTLM_USER_FILE=$folder/users "$folder/venv/bin/python" "$folder/try.py" || {
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
