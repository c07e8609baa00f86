"""Messages that are held back until their time: `send --not-before` (G656).

MSMQ's packets have no field for that. So a message that is not to be sent yet is no message: what
the program has said of it is kept here, durably, and at its time it is sent as if the program did
it then, in the commit that ends keeping it.
"""

import base64
import heapq
import json
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Protocol

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.clock import Timer
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError, NtStatus
from rpcqm.base.identity import EVERYONE, Identity, TokenRight, TokenScope
from rpcqm.base.log import get_logger
from rpcqm.base.text import folded, iso_time
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.names.written import HERE, short_name
from rpcqm.operations.audit import ordered
from rpcqm.operations.drafts import Draft, attributes_of
from rpcqm.operations.messages import MessageOperations
from rpcqm.operations.tokens import TokenView
from rpcqm.qm.access_explained import denied_to
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.held_records import HeldRecords
from rpcqm.qm.program_work import Also

MOST_SCHEDULED = 100_000
"""Messages that are held back until their time.

Each takes about 500 octets of memory, without its body.

Bound `program.scheduled` [messages]: the call is refused.
"""
MOST_OF_ACCOUNT = 10_000
"""Messages of one account that are held back, all of which one answer has.

Bound `program.scheduled_of_account` [messages]: the call is refused.
"""
MOST_OCTETS = 1 << 30
"""Octets on the disk of all messages that are held back, with their properties.

Bound `program.scheduled_octets` [octets]: the call is refused.
"""
LONGEST = 10 * 365 * 86_400_000
"""Milliseconds: a time beyond that is a mistake."""
RETRY = 60_000
"""Milliseconds until a message that was refused is tried again, and between looks at the clock."""
AT_ONCE = 64
"""Messages that are sent in one turn; others come between."""

_log = get_logger("operations")


class AccountsBySid(Protocol):
    """The accounts by their SIDs, as they are now."""

    def identity_of_sid(self, sid: str) -> Identity: ...


class TokensByName(Protocol):
    """The tokens by their names, as they are now."""

    def find(self, name: str) -> TokenView | None: ...


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A message that is held back; times are milliseconds since 1970, `octets` those of its record.

    `trouble` is why it could not be sent at its time; "" before that. `queue_ids` are the numbers
    of those of its queues that are here, 0 for others: a queue may get another name (G795).
    """

    identifier: str
    due: int
    made: int
    account: str
    sid: str
    scope: TokenScope | None
    queues: tuple[str, ...]
    label: str
    size: int
    trouble: str = ""
    octets: int = 0
    queue_ids: tuple[int, ...] = ()

    def is_of(self, identity: Identity) -> bool:
        """Whether it is the caller's; users of the machine without an account share one SID.

        The bearer of a token that leaves something out has what was held back by that token.
        """
        if self.sid != identity.sid or (self.sid == EVERYONE and self.account != identity.name):
            return False
        scope = identity.scope
        if scope is None or scope.is_whole:
            return True
        return self.scope is not None and self.scope.token == scope.token


class Scheduling:
    """Holds messages back, and sends them. Accounts see and cancel their own ones."""

    def __init__(
        self,
        engine: QueueManagerEngine,
        messages: MessageOperations,
        accounts: AccountsBySid,
        tokens: TokensByName,
    ) -> None:
        self._engine = engine
        self._records = HeldRecords(engine.store)
        self._messages = messages
        self._accounts = accounts
        self._tokens = tokens
        self._kept: dict[str, Scheduled] = {}
        self._due: list[tuple[int, str]] = []
        self._octets = 0
        self._of_account: Counter[str] = Counter()
        self._sending: set[str] = set()
        self._timer: Timer | None = None
        for identifier, value in self._records.all():
            try:
                self._take_up(_decoded(value)[0])
            except DecodeError as error:
                _log.error(
                    "a message that is held back cannot be read",
                    id=identifier,
                    problem=str(error),
                )
        engine.stopped_hooks.append(self.stop)
        self._watch()

    def stop(self) -> None:
        """Send nothing more; what is held back is kept."""
        self._due.clear()
        self._watch()

    # Scheduling

    def schedule(
        self, identity: Identity, names: tuple[FormatName, ...], draft: Draft, due: int
    ) -> Completion[str]:
        """Hold a message back until `due`; gives its identifier among those, once it is durable.

        Whether it could be sent is asked now, and again at its time. Raises MQError as sending
        does, and INSUFFICIENT_RESOURCES for too many.
        """
        now = self._engine.clock.now()
        if not 0 <= due <= now + LONGEST:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "more than ten years from now")
        attributes_of(draft)
        self._engine.admission.check()
        self._messages.check_sending(identity, names, draft)
        new = Scheduled(
            secrets.token_hex(8),
            due,
            now,
            identity.name,
            identity.sid,
            identity.scope,
            tuple(map(str, names)),
            draft.label,
            len(draft.body),
            queue_ids=tuple(map(self._queue_id, names)),
        )
        record = _encoded(new, draft)
        new = replace(new, octets=len(record))
        self._check_room(new)
        outcome: Completion[str] = Completion()
        self._know(new)
        undone, durable = (
            partial(self._drop, new.identifier),
            partial(self._is_durable, new, outcome),
        )
        self._records.put(new.identifier, record, undone, durable)
        return outcome

    def _check_room(self, new: Scheduled) -> None:
        """Raise MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) if another one would be too many."""
        many = len(self._kept) >= MOST_SCHEDULED or self._of_account[new.sid] >= MOST_OF_ACCOUNT
        if many or self._octets + new.octets > MOST_OCTETS:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many are held back")

    def _is_durable(self, new: Scheduled, outcome: Completion[str]) -> None:
        """Only now its time may come: before this, its record cannot be read."""
        heapq.heappush(self._due, (new.due, new.identifier))
        self._watch()
        outcome.succeed(new.identifier)

    def holders(self) -> frozenset[str]:
        """The SIDs of the accounts whose messages are held back."""
        return frozenset(kept.sid for kept in self._kept.values())

    def list(self, identity: Identity) -> list[Scheduled]:
        """The messages of the caller, or all for administrators and observers, by their time."""
        found = self._kept.values()
        seen = [each for each in found if identity.may_look or each.is_of(identity)]
        named = [replace(each, queues=tuple(map(str, self._names_now(each)))) for each in seen]
        return sorted(named, key=lambda each: (each.due, each.identifier))

    def cancel(self, identity: Identity, identifier: str) -> Completion[None]:
        """Forget a message of the caller's, or any for administrators; done when durable.

        Raises MQError(STATUS_OBJECT_NAME_NOT_FOUND), also for one that is being sent.
        """
        kept = self._kept.get(identifier)
        visible = kept is not None and (identity.may_look or kept.is_of(identity))
        if kept is None or not visible or identifier in self._sending:
            raise MQError(NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, identifier[:64])
        with ordered(identity, "cancel held message", identifier, queue=", ".join(kept.queues)):
            if not may_cancel(identity, kept):
                raise denied_to(identity, "the sender and administrators")
            self._drop(identifier)
            return self._records.remove(identifier, partial(self._take_up, kept))

    # Sending

    def _know(self, kept: Scheduled) -> None:
        self._octets += kept.octets
        self._of_account[kept.sid] += 1
        self._kept[kept.identifier] = kept

    def _take_up(self, kept: Scheduled) -> None:
        self._know(kept)
        heapq.heappush(self._due, (kept.due, kept.identifier))

    def _drop(self, identifier: str) -> None:
        kept = self._kept.pop(identifier, None)
        if kept is not None:
            self._octets -= kept.octets
            self._of_account[kept.sid] -= 1

    def _watch(self) -> None:
        """Look again at the next time, and not much later where somebody sets the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            wait = self._due[0][0] - self._engine.clock.now()
            self._timer = self._engine.timers.call_later(min(max(wait, 0), RETRY), self._look)

    def _look(self) -> None:
        self._timer, now = None, self._engine.clock.now()
        for _ in range(AT_ONCE):
            if not self._due or self._due[0][0] > now:
                break
            _, identifier = heapq.heappop(self._due)
            kept = self._kept.get(identifier)
            if kept is not None and identifier not in self._sending:
                self._send(kept)
        self._watch()

    def _send(self, kept: Scheduled) -> None:
        """Send it with the rights that its account has now; a refusal is tried again later."""
        identifier = kept.identifier
        try:
            _, draft = _decoded(self._records.get(identifier))
            names = self._names_now(kept)
            sent = self._messages.send_held(self._identity_of(kept), names, draft, self._ends(kept))
        except (MQError, DecodeError) as error:
            self._put_off(kept, error)
            return
        self._sending.add(identifier)
        sent.add_done_callback(lambda _: self._sending.discard(identifier))

    # Names

    def _queue_id(self, name: FormatName) -> int:
        queue = self._engine.registry.find_by_format_name(name)
        return 0 if queue is None or isinstance(queue, OutgoingQueue) else queue.queue_id

    def _names_now(self, kept: Scheduled) -> tuple[FormatName, ...]:
        """The queues that it was held back for, by the names that they have now."""
        names = map(FormatName.parse, kept.queues)
        numbers = kept.queue_ids or (0,) * len(kept.queues)
        return tuple(map(self._name_now, names, numbers))

    def _name_now(self, name: FormatName, number: int) -> FormatName:
        queue = self._engine.registry.find_by_id(number)
        if queue is None or not isinstance(name.value, str):
            return name
        path, now = name.path_name, PathName.parse(queue.pathname)
        if folded(path.queue) == folded(now.queue):
            return name
        return FormatName.direct(f"{name.direct_name.protocol}:{replace(path, queue=now.queue)}")

    def _ends(self, kept: Scheduled) -> Also:
        """What ends keeping it in the commit that sends it."""
        ends = partial(self._drop, kept.identifier)
        return self._records.removing(kept.identifier, ends, partial(self._take_up, kept))

    def _identity_of(self, kept: Scheduled) -> Identity:
        identity = self._accounts.identity_of_sid(kept.sid)
        if identity.sid != kept.sid:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, f"the account {kept.account} has gone")
        if kept.scope is None:
            return identity
        token = self._tokens.find(kept.scope.token)
        if token is None or token.account != kept.account or token.created > kept.made:
            told = f"the token {kept.scope.token} has gone"
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, told)
        return identity.narrowed(TokenScope(token.name, token.rights, token.keys))

    def _put_off(self, kept: Scheduled, error: MQError | DecodeError) -> None:
        """Keep what could not be sent, and say why; it goes when it can, or is cancelled."""
        trouble = str(error)
        if trouble != kept.trouble:
            _log.warning(
                "a message that was held back cannot be sent",
                id=kept.identifier,
                queue=", ".join(kept.queues),
                account=kept.account,
                reason=trouble,
            )
        self._kept[kept.identifier] = replace(kept, trouble=trouble)
        heapq.heappush(self._due, (self._engine.clock.now() + RETRY, kept.identifier))


def may_cancel(identity: Identity, kept: Scheduled) -> bool:
    """Whether a caller may cancel a message that is held back."""
    return identity.is_administrator or (kept.is_of(identity) and not identity.read_only)


def described(kept: Scheduled) -> dict[str, object]:
    """A message that is held back, for programs."""
    return {
        "id": kept.identifier,
        "not_before": iso_time(kept.due / 1000),
        "made": iso_time(kept.made / 1000),
        "account": kept.account,
        "queue": ",".join(kept.queues),
        "queue_name": ", ".join(map(_shown, kept.queues)),
        "label": kept.label,
        "body_size": kept.size,
        "trouble": kept.trouble,
    }


def _shown(text: str) -> str:
    """What people call a queue: the short name of one here, the format name of another."""
    name = FormatName.parse(text)
    if not isinstance(name.value, str) or name.is_http or name.path_name.computer != HERE:
        return text
    return short_name(str(name.path_name))


def draft_in(members: dict[str, Any], body: bytes) -> Draft:
    """A draft of its members as JSON; raises MQError(MQ_ERROR_INVALID_PARAMETER)."""
    try:
        given = {**members, "acknowledgements": tuple(members.get("acknowledgements", ()))}
        draft = Draft(body=body, **given)
        attributes_of(draft)
    except (TypeError, AttributeError, ValueError) as error:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "that is no message") from error
    return draft


def _encoded(kept: Scheduled, draft: Draft) -> bytes:
    members = asdict(replace(kept, scope=None))
    members["scope"] = None if kept.scope is None else _told_scope(kept.scope)
    described = asdict(draft)
    described["body"] = base64.b64encode(draft.body).decode()
    return json.dumps({"version": 1, "kept": members, "draft": described}).encode()


def _told_scope(scope: TokenScope) -> dict[str, object]:
    queues: Sequence[str] | None = None if scope.queues is None else sorted(scope.queues)
    return {"token": scope.token, "rights": sorted(scope.rights), "queues": queues}


def _decoded(value: bytes) -> tuple[Scheduled, Draft]:
    """Read a record; raises DecodeError if it is damaged."""
    try:
        record = json.loads(value)
        members, described = record["kept"], record["draft"]
        scope = members.pop("scope")
        if scope is not None:
            queues = None if scope["queues"] is None else frozenset(scope["queues"])
            rights = frozenset(map(TokenRight, scope["rights"]))
            scope = TokenScope(str(scope["token"]), rights, queues)
        members["queues"] = tuple(map(str, members["queues"]))
        for name in ("due", "made", "size"):
            members[name] = int(members[name])
        members["octets"] = len(value)
        members["queue_ids"] = tuple(map(int, members.get("queue_ids", ())))
        kept = Scheduled(**members, scope=scope)
        body = base64.b64decode(described.pop("body"), validate=True)
        draft = draft_in(described, body)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, MQError) as error:
        raise DecodeError(f"damaged record of a message that is held back: {error!r}") from error
    return kept, draft
