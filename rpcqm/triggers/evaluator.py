"""Asks the process that evaluates expressions, ends it when it takes long, and starts another."""

import asyncio
import contextlib
import json
import sys
from typing import Protocol

from rpcqm.triggers.questions import Question

SECONDS = 5.0
"""Seconds for one expression over one body."""
LARGEST_EVALUATED = 1 << 20
"""Octets of a body in which an XPath or a JSONPath is evaluated.

Documents take many times their octets in memory.

Bound `triggers.largest_evaluated` [octets]: the condition does not hold.
"""


class EvaluationError(Exception):
    """An expression that is wrong, or takes too long; the text is a clause."""

    def __init__(self, text: str, is_wrong: bool = False) -> None:
        super().__init__(text)
        self.is_wrong = is_wrong


class Evaluates(Protocol):
    """Decides whether an expression holds."""

    async def holds(self, kind: str, expression: str, body: bytes) -> bool:
        """Whether it holds; raises EvaluationError."""
        ...


class Evaluator:
    """One process, which is started when it is first needed; questions wait for each other."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: asyncio.subprocess.Process | None = None
        self._asking = asyncio.Lock()

    async def holds(self, kind: str, expression: str, body: bytes) -> bool:
        """Whether an expression holds for a body; raises EvaluationError."""
        if len(body) > LARGEST_EVALUATED:
            return False
        async with self._asking:
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await self._ask(Question(kind, expression, len(body)), body)
            except TimeoutError:
                await self.stop()
                raise EvaluationError(f"it took longer than {self._seconds:g} s") from None
            except BaseException:  # an answer that nobody has read would be the next one's
                await self.stop()
                raise
        if not answer:
            await self.stop()
            raise EvaluationError("the process that evaluates expressions has ended")
        told = json.loads(answer)
        if "wrong" in told:
            raise EvaluationError(str(told["wrong"]), is_wrong=True)
        return bool(told["holds"])

    async def _ask(self, question: Question, body: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "rpcqm.triggers.evaluating"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(question.line() + body)
            await process.stdin.drain()
        return await process.stdout.readline()

    async def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
