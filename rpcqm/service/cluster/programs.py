"""The operator's programs that run when a node takes over, or is a standby again."""

import asyncio
import os
from collections.abc import Mapping, Sequence

from rpcqm.base.log import get_logger
from rpcqm.service.start_error import StartError

LONGEST_SECONDS = 30.0
"""Seconds after which a program is ended and counts as failed."""

_log = get_logger("service")


async def run_program(key: str, words: Sequence[str], told: Mapping[str, str]) -> None:
    """Run a program without a shell, if there is one; StartError if it fails.

    `told` is added to its environment.
    """
    if not words:
        return
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, env={**os.environ, **told}
        )
    except OSError as error:
        raise StartError(f"{key}: {words[0]} cannot be run: {error.strerror}.") from error
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            status = await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise StartError(f"{key}: {words[0]} did not end within {LONGEST_SECONDS:.0f} s.") from None
    except BaseException:
        process.kill()
        raise
    if status:
        raise StartError(f"{key}: {words[0]} ended with {status}.")
    _log.info("program has run", setting=key, program=words[0])
