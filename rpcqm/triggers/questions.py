"""Questions to the process that evaluates expressions over bodies."""

import json
from dataclasses import asdict, dataclass
from typing import Self

XPATH, JSON_PATH = "xpath", "json_path"


@dataclass(frozen=True, slots=True)
class Question:
    """An expression, and the `size` in octets of the body that follows."""

    kind: str
    expression: str
    size: int

    def line(self) -> bytes:
        """The line that precedes the body."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Self:
        """The question in a line that `line` made."""
        return cls(**json.loads(line))
