"""Questions to the process that evaluates expressions over bodies."""

import json
from dataclasses import asdict, dataclass
from typing import Self

XPATH, JSON_PATH = "xpath", "json_path"


@dataclass(frozen=True, slots=True)
class Question:
    """Whether an expression holds for a body of `size` octets, which follow."""

    kind: str
    expression: str
    size: int

    def line(self) -> bytes:
        """What is written before the body."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Self:
        """The question of a line that `line` has made."""
        return cls(**json.loads(line))
