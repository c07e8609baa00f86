"""Why an access check says what it says: the steps of the check itself, and what a token leaves."""

import enum
from dataclasses import dataclass

from rpcqm.adm.queue import Queue
from rpcqm.base.identity import Identity
from rpcqm.codec.security.access_check import PreparedDescriptor, Reason, Step
from rpcqm.codec.security.permissions import Vocabulary
from rpcqm.qm.looking import only_looks
from rpcqm.qm.token_scopes import permits


class Because(enum.StrEnum):
    """What decides whether somebody has a right."""

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
    """Whether somebody has the right of a word, and the steps that decide it."""

    word: str
    granted: bool
    because: Because
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """All steps of a check in their order, and what follows for each right."""

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
