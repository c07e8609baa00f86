"""What Schemathesis does around each request; it loads this file by SCHEMATHESIS_HOOKS.

`RPCQM_API_SOAK` is the directory for backups and for the list of what has been asked.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import schemathesis

ASKED = "asked"
_DIRECTORY = Path(os.environ["RPCQM_API_SOAK"])
_SELF = "boss"


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Keep what is written inside the directory, the account that asks, and the doors open.

    In maintenance no message is taken, which would be the answer to all sends that follow.
    """
    body = case.body
    if case.path.endswith("/backups") and isinstance(body, dict):
        directory = body.get("directory")
        if isinstance(directory, str) and directory:
            name = hashlib.sha256(directory.encode("utf-8", "replace")).hexdigest()[:16]
            case.body = body | {"directory": str(_DIRECTORY / name)}
    name = str(case.path_parameters.get("name", ""))
    if case.path.endswith("/queue-manager") and isinstance(body, dict):
        case.body = {name: value for name, value in body.items() if name != "maintenance"}
    if case.path.startswith("/api/v1/accounts/") and name.casefold() == _SELF:
        case.path_parameters["name"] = f"{_SELF}-2"


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Write down which operation was asked and what was answered."""
    with (_DIRECTORY / ASKED).open("a", encoding="utf-8") as file:
        file.write(f"{case.operation.label}\t{response.status_code}\n")
