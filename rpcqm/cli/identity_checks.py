"""What `rpcqm doctor` says of identities: the data directory's own, and those of others."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.cli.checks import TIMEOUT, Check, CheckedMachine, CheckResult, Level
from rpcqm.store.directory_mark import Standing, look_at
from rpcqm.store.errors import StoreError

_SUBJECT = "identity"
_SHOWN = frozenset({"identity_shared", "queue_unusable"})
"""What needs attention and is no matter of load."""
_SAID = {
    Standing.OWN: (Level.GOOD, "{path} is where its mark was written, and no copy."),
    Standing.UNKNOWN: (
        Level.WARNING,
        "The file system of {path} has no identifier that stays: a copy would start as the same "
        "queue manager, which must never happen.",
    ),
    Standing.COPY: (
        Level.PROBLEM,
        "{path} was copied, or moved to another file system, and does not start until "
        "`rpcqm identity` has said what it is.",
    ),
}


def check_mark(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Whether the data directory is the one that was marked; the first start marks it."""
    path = patient.configuration.data_dir
    try:
        standing = look_at(path).standing
    except StoreError as error:
        yield CheckResult(_SUBJECT, Level.PROBLEM, str(error))
        return
    except OSError as error:
        text = f"The mark of {path} cannot be read: {error.strerror}."
        yield CheckResult(_SUBJECT, Level.PROBLEM, text)
        return
    if standing in _SAID:
        level, text = _SAID[standing]
        yield CheckResult(_SUBJECT, level, text.format(path=path))


def check_attention(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Identities that two queue managers have, and queues that cannot be used."""
    if patient.running is None:
        return
    try:
        found = asyncio.run(asyncio.wait_for(_attention(patient.running.socket), TIMEOUT))
    except (MQError, RpcFault, DecodeError, OSError, TimeoutError) as error:
        text = f"What needs attention cannot be found out: {error or type(error).__name__}."
        yield CheckResult("attention", Level.WARNING, text)
        return
    for each in found:
        if each["code"] in _SHOWN:
            yield CheckResult("attention", Level.PROBLEM, str(each["text"]))


async def _attention(local: Path) -> list[dict[str, Any]]:
    # Only now, because the interfaces take time to load.
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.target import LocalServer

    async with QueueManagerClient(LocalServer(local)) as client:
        overview = await client.maintenance.overview()
        told: list[dict[str, Any]] = overview["attention"]
        return told


IDENTITY_CHECKS: tuple[Check, ...] = (check_mark, check_attention)
