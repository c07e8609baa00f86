"""A directory in a file of JSON, for tests of what writes when a controller does not do its part.

It takes the orders of the process that asks a directory. A server called ``readonly`` takes no
changes, ``silent`` does not answer them, and ``deaf`` carries them out and then says nothing.
Which parts of a descriptor the last change was about is a value of its object, ``parts``.
"""

import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any

COMPUTER = "CN=QM1,CN=Computers,DC=corp,DC=test"
OWN = f"CN=msmq,{COMPUTER}"
SID = "\x01\x05\x00\x00\x00\x00\x00\x05" + "".join(
    number.to_bytes(4, "little").decode("latin-1") for number in (21, 1, 2, 3, 1103)
)
Values = dict[str, list[str]]


class Small:
    """Objects by their names, kept in a file so that another process goes on with them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server = ""
        self.objects: dict[str, Values] = json.loads(path.read_text()) if path.exists() else {}

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        kind = order["order"]
        if kind in ("add", "modify", "delete"):
            if self.server == "readonly":
                return {"code": 10, "text": "Referral"}
            if self.server == "silent":
                time.sleep(600)
            done = self.change(order)
            self.path.write_text(json.dumps(self.objects))
            if self.server == "deaf":
                time.sleep(600)
            return done
        if kind == "connect":
            self.server = order["server"]
            root = {
                "defaultnamingcontext": ["DC=corp,DC=test"],
                "configurationnamingcontext": ["CN=Configuration,DC=corp,DC=test"],
                "highestcommittedusn": ["1"],
            }
            return {"code": 0, "text": "", "more": {"root": root}}
        return {"code": 0, "text": ""}

    def change(self, order: dict[str, Any]) -> dict[str, Any]:
        name = order["name"]
        if order["order"] == "add":
            if name in self.objects:
                return {"code": 68, "text": "exists"}
            given: Values = {key.lower(): value for key, value in order["attributes"].items()}
            self.objects[name] = given | {"objectguid": [uuid.uuid4().bytes.decode("latin-1")]}
        elif name not in self.objects:
            return {"code": 32, "text": "not there"}
        elif order["order"] == "delete":
            del self.objects[name]
        else:
            for _, attribute, values in order["changes"]:
                self.objects[name][attribute.lower()] = values
            self.objects[name]["parts"] = [str(order["flags"])]
        return {"code": 0, "text": ""}

    def found(self, order: dict[str, Any]) -> dict[str, Values] | None:
        base = order["base"]
        if order["scope"] == "all":
            return {COMPUTER: {"objectsid": [SID]}} if "computer" in order["filter"] else {}
        if base.startswith("<GUID="):
            octets = uuid.UUID(base[6:-1]).bytes_le.decode("latin-1")
            some = {n: v for n, v in self.objects.items() if v["objectguid"] == [octets]}
            return some or None
        if base == OWN:
            return {OWN: {"objectguid": [uuid.UUID(int=1).bytes.decode("latin-1")]}}
        return {base: self.objects[base]} if base in self.objects else None


def say(message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    sys.stdout.buffer.write(len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()


def main() -> None:
    small = Small(Path(sys.argv[1]))
    while len(head := sys.stdin.buffer.read(4)) == 4:
        order = json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))
        if order["order"] == "search":
            found = small.found(order)
            if found:
                say({"entries": list(found.items())})
            say({"code": 32 if found is None else 0, "text": ""})
        else:
            say(small.answer(order))


if __name__ == "__main__":
    main()
