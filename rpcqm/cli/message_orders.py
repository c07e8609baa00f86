"""An order for messages of a queue: it is begun, followed to its end, and summed up."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError
from rpcqm.cli.errors import CommandError, NothingCame
from rpcqm.cli.message_choice import conditions
from rpcqm.cli.options import queue_name
from rpcqm.cli.output import ProgressDisplay, counted
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.message_orders import OrderState
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.codec.names.format_name import FormatName

DONE = {"move": "Moved", "copy": "Copied", "resend": "Sent again"}


_SAID_BY_DETAIL = frozenset({HResult.MQ_ERROR_INVALID_PARAMETER, HResult.MQ_ERROR_STALE_HANDLE})
"""Codes whose meaning says less than the detail of the error."""


class FollowedOrder:
    """One command's order, which may be several: each is for a bounded number of messages."""

    def __init__(self, arguments: argparse.Namespace, doing: str, source: str, to: str | None):
        self._arguments, self.doing = arguments, doing
        self._source, self._to = source, to
        self.done = 0
        self._gone = self._unread = 0
        self._staying: Counter[tuple[str, str]] = Counter()
        self._state: OrderState | None = None
        self._interrupted = False

    @property
    def purpose(self) -> str:
        """What a refusal says that was not possible."""
        verb = "send again" if self.doing == "resend" else self.doing
        to = "" if self._to is None else f" to `{self._to}`"
        return f"{verb} from `{self._source}`{to}"

    def run(self, edits: Mapping[str, object] | None = None, keep: bool = False) -> int:
        """Carry it out, however it ends, and tell how many messages were done."""
        arguments = self._arguments
        source = queue_name(arguments, self._source)
        to = None if self._to is None else queue_name(arguments, self._to)
        order: dict[str, object] = {"doing": self.doing, "edits": dict(edits or {}), "keep": keep}

        async def work(client: "QueueManagerClient") -> None:
            with ProgressDisplay(DONE[self.doing]) as progress:
                chosen = await self._chosen(client, source)
                await self._follow(client, source, to, order | chosen, progress)

        try:
            with_server(arguments, self.purpose, work)
        except KeyboardInterrupt:
            print(f"Interrupted; {self._sentence()}.", file=sys.stderr)
            raise
        except CommandError as error:
            raise self._after(error) from error
        return self._tell()

    async def _chosen(
        self, client: "QueueManagerClient", source: "FormatName"
    ) -> dict[str, object]:
        """The messages that the command chooses; without a choice the first available one."""
        arguments = self._arguments
        if texts := conditions(arguments):
            return {"filter": texts}
        if arguments.all:
            return {"all": True}
        if arguments.lookup_id:
            return {"lookup_ids": [str(each) for each in arguments.lookup_id]}
        async with client.open_reader(source, peek_only=True, outgoing=True) as reader:
            first = await reader.peek(timeout=0, body=0)
        return {"lookup_ids": [str(first.lookup_identifier)]}

    async def _follow(
        self,
        client: "QueueManagerClient",
        source: "FormatName",
        to: "FormatName | None",
        order: dict[str, object],
        progress: ProgressDisplay,
    ) -> None:
        orders = client.message_orders
        more = True
        while more:
            state = await self._taken(orders.begin(source, to, order), progress)
            while not state.ended:
                state = await self._taken(orders.go_on(state, stop=self._interrupted), progress)
            self._end(state)
            more = state.more and not self._is_hopeless(state)
            order |= {"after": state.after, "until": state.until}
            if self._interrupted:
                raise asyncio.CancelledError

    async def _taken(
        self, asking: "Awaitable[OrderState]", progress: ProgressDisplay
    ) -> "OrderState":
        """Await an answer, also when the command is interrupted meanwhile, so that it counts."""
        task = asyncio.ensure_future(asking)
        try:
            state = await asyncio.shield(task)
        except asyncio.CancelledError:
            self._interrupted = True
            await asyncio.wait([task])
            state = task.result()
        self._state = state
        progress.advance_to(self.done + state.messages)
        return state

    def _end(self, state: "OrderState") -> None:
        """Count what has become of one order."""
        self._state = None
        self.done += state.messages
        self._gone += state.gone
        self._unread += state.unread
        for each in state.staying:
            self._staying[each.code, each.detail] += each.messages

    def _is_hopeless(self, state: "OrderState") -> bool:
        """Whether the messages behind these would stay, too: not one of these could be sent."""
        return bool(state.staying) and not state.messages

    # Telling

    def _sentence(self) -> str:
        """How many were done, and what has become of the others."""
        done = self.done + (0 if self._state is None else self._state.messages)
        parts = [f"{DONE[self.doing].lower()} {counted(done, 'message')}"]
        if self._gone:
            parts.append(f"{self._gone:,} had gone meanwhile")
        if self._unread:
            parts.append(f"{self._unread:,} not read to their end, which stay")
        if self._staying:
            parts.append(why_they_stay(self._staying))
        return "; ".join(parts)

    def _tell(self) -> int:
        """Tell the outcome; raises CommandError if messages stay that were meant."""
        sentence = self._sentence()
        sentence = f"{sentence[:1].upper()}{sentence[1:]}."
        if self._staying:
            raise CommandError(sentence)
        if self._gone and not self.done and self._arguments.lookup_id:
            status = HResult.MQ_ERROR_MESSAGE_NOT_FOUND
            raise CommandError(
                f"Cannot {self.purpose}: {status.meaning.rstrip('.').lower()} ({status.name})."
            )
        print(sentence)
        return 0

    def _after(self, error: CommandError) -> CommandError:
        """A refusal with what was done before it."""
        cause = error.__cause__
        if isinstance(cause, MQError) and cause.status is HResult.MQ_ERROR_IO_TIMEOUT:
            return NothingCame(
                f"Cannot {self.purpose}: no message is there that can be had (MQ_ERROR_IO_TIMEOUT)."
            )
        if isinstance(cause, MQError) and cause.detail and cause.status in _SAID_BY_DETAIL:
            error = CommandError(f"Cannot {self.purpose}: {cause.detail} ({cause.status.name}).")
        if self._state is None and not self.done:
            return error
        return CommandError(f"{error} Before that: {self._sentence()}.", error.status)


def why_they_stay(staying: Counter[tuple[str, str]]) -> str:
    """How many messages stay, and why; of several reasons how many each."""
    total = staying.total()
    verb = "stays" if total == 1 else "stay"
    if len(staying) == 1:
        ((code, detail),) = staying
        return f"{total:,} {verb}: {detail} ({code})"
    reasons = (
        f"{number:,} because {detail} ({code})" for (code, detail), number in staying.most_common()
    )
    return f"{total:,} {verb}: {', '.join(reasons)}"
