"""The file in which a running queue manager tells where it can be reached."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from uuid import UUID

ENDPOINT_FILE = "rpcqm.json"
"""The name of the file in the data directory, where the commands look for it."""


@dataclass(frozen=True, slots=True)
class ReadyFile:
    """A running queue manager: its process, its name and identifier, and its doors.

    `endpoints` are addresses and ports by door (epm, rpc, qm2qm); `socket` is where local
    callers connect.
    """

    pid: int
    name: str
    id: UUID
    socket: Path
    endpoints: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; raises FileNotFoundError, or ValueError if it has another form."""
        content = json.loads(path.read_text("utf-8"))
        try:
            return cls(
                int(content["pid"]),
                str(content["name"]),
                UUID(content["id"]),
                Path(content["socket"]),
                {door: (str(at[0]), int(at[1])) for door, at in content["endpoints"].items()},
            )
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{path} is not what a queue manager writes") from error

    def write(self, path: Path) -> None:
        """Replace the file in one step, readable by every user."""
        content = {
            "pid": self.pid,
            "name": self.name,
            "id": str(self.id),
            "endpoints": {door: list(at) for door, at in self.endpoints.items()},
            "socket": str(self.socket),
        }
        draft = path.with_name(f".{path.name}.{self.pid}")
        draft.write_text(json.dumps(content) + "\n", "utf-8")
        draft.chmod(0o644)
        os.replace(draft, path)
