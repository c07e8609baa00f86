"""Explains the result of an access check: its steps, and the limits of a token."""

import enum
from dataclasses import dataclass

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.security.access_check import PreparedDescriptor, Reason, Step
from rpcqm.codec.security.permissions import Vocabulary, rights_in
from rpcqm.qm.looking import only_looks
from rpcqm.qm.token_scopes import permits


class Because(enum.StrEnum):
    """The reasons that decide about a right."""

    PRIVILEGE = Reason.PRIVILEGE.value
    OWNER = Reason.OWNER.value
    NO_LIST = Reason.NO_LIST.value
    ENTRY = Reason.ENTRY.value
    DENIED = "denied"
    NOT_ALLOWED = "not allowed"
    TOKEN = "token"
    ENDED = "ended"
    READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a caller has the right of a word, and the deciding steps."""

    word: str
    granted: bool
    because: Because
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """All steps of a check in their order, and the result for each right."""

    identity: Identity
    steps: tuple[Step, ...]
    verdicts: tuple[Verdict, ...]


def explained(
    prepared: PreparedDescriptor, words: Vocabulary, identity: Identity, queue: Queue | None
) -> Explanation:
    """The check of each right of `words`, as `AccessControl.allows` makes it."""
    steps = tuple(prepared.steps(identity.sids))
    rights = [(word, mask) for word, mask in words.words.items() if word != "full"]
    verdicts = [_verdict(word, mask, steps, words, identity, queue) for word, mask in rights]
    return Explanation(identity, steps, tuple(verdicts))


def _verdict(
    word: str,
    mask: int,
    steps: tuple[Step, ...],
    words: Vocabulary,
    identity: Identity,
    queue: Queue | None,
) -> Verdict:
    if identity.validity.ended:
        return Verdict(word, False, Because.ENDED)
    if identity.read_only and not only_looks(words.mapping, mask):
        return Verdict(word, False, Because.READ_ONLY)
    scope = identity.scope
    if scope is not None and not permits(scope, words.mapping, mask, queue):
        return Verdict(word, False, Because.TOKEN)
    deciding = [step for step in steps if step.decides & mask]
    denying = tuple(step for step in deciding if not step.allows)
    if denying:
        return Verdict(word, False, Because.DENIED, denying)
    left = mask
    for step in deciding:
        left &= ~step.decides
    if left:
        return Verdict(word, False, Because.NOT_ALLOWED)
    return Verdict(word, True, Because(deciding[0].reason.value), tuple(deciding))


def refusal(identity: Identity, what: str, rights: int, words: Vocabulary, granted: int = 0) -> str:
    """The sentence for a caller who lacks `rights`: which of them, on what object, and why."""
    cause = _cause(identity, only_looks(words.mapping, rights))
    asked = rights_in(words.mapping.map(int(rights)), words)
    lacking = [word for word in asked if words.words.get(word, 0) & ~granted]
    named = asked if cause or not lacking else lacking
    return f"{identity.name} lacks {' and '.join(named)} on {what}{cause}"


def denied_to(identity: Identity, callers: str, *, looks: bool = False) -> MQError:
    """The refusal of an order for some `callers` only; `looks` if the order changes nothing."""
    told = f"only {callers} may do this, not {identity.name}{_cause(identity, looks)}"
    return MQError(HResult.MQ_ERROR_ACCESS_DENIED, told)


def _cause(identity: Identity, looks: bool) -> str:
    """The reason that takes a right from a caller, whatever the entries of a descriptor allow."""
    if identity.validity.ended:
        return ": the account has ended"
    if identity.read_only and not looks:
        return ": the account may only look"
    scope = identity.scope
    if scope is not None and not scope.is_whole:
        where = "" if scope.queues is None else " on some queues"
        left = ", ".join(sorted(scope.rights)) or "nothing"
        return f": the token {scope.token} leaves only {left}{where}"
    return ""
