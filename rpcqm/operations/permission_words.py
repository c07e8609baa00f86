"""Permissions and explanations of them in words, and in what JSON has."""

from collections.abc import Iterable

from rpcqm.codec.security.access_check import Concern, Reason, Step
from rpcqm.codec.security.permissions import MACHINE, QUEUE, Vocabulary, permissions, rights_in
from rpcqm.operations.account_names import AccountNames
from rpcqm.operations.permissions import Explained, ShownPermissions
from rpcqm.qm.access_explained import Because, Verdict

_FULL = frozenset({Reason.PRIVILEGE, Reason.NO_LIST})


def described_permissions(shown: ShownPermissions, of: Vocabulary = QUEUE) -> dict[str, object]:
    """The owner and who may do what, by name, with the version that a change names."""
    descriptor, names = shown.descriptor, shown.names
    owner = None if descriptor.owner is None else str(descriptor.owner)
    return {
        "owner": owner,
        "owner_name": None if owner is None else names.of(owner),
        "entries": [
            {
                "name": names.of(str(each.sid)),
                "sid": str(each.sid),
                "allowed": rights_in(each.allowed, of),
                "denied": rights_in(each.denied, of),
                "removed": names.is_removed(str(each.sid)),
            }
            for each in permissions(descriptor, of)
        ],
        "version": shown.version,
    }


def described_explanation(explained: Explained, *, machine: bool = False) -> dict[str, object]:
    """What somebody may do, why, and what every entry has to do with it."""
    words, explanation = MACHINE if machine else QUEUE, explained.explanation
    identity, names = explanation.identity, explained.names
    return {
        "account": identity.name,
        "sid": identity.sid,
        "groups": sorted(names.of(each) for each in identity.groups if each != identity.sid),
        "token": None if identity.scope is None else identity.scope.token,
        "owner": None if explained.owner is None else names.of(str(explained.owner)),
        "rights": [
            {
                "right": each.word,
                "granted": each.granted,
                "because": each.because.value,
                "entries": _numbers(each.steps),
                "why": why(each, explained),
            }
            for each in explanation.verdicts
        ],
        "steps": [_described_step(each, names, words) for each in explanation.steps],
    }


def _described_step(step: Step, names: AccountNames, words: Vocabulary) -> dict[str, object]:
    sid = None if step.ace is None or step.ace.sid is None else str(step.ace.sid)
    return {
        "entry": None if step.place is None else step.place + 1,
        "reason": step.reason.value,
        "effect": effect_of(step),
        "name": None if sid is None else names.of(sid),
        "sid": sid,
        "rights": rights_in(_shown_mask(step, step.mask, words), words),
        "decides": rights_in(_shown_mask(step, step.decides, words), words),
        "concern": step.concern.value,
    }


def _shown_mask(step: Step, mask: int, words: Vocabulary) -> int:
    """What of a mask is a right here; entries are told as they are."""
    return mask & words.full if step.reason in _FULL else mask


def effect_of(step: Step) -> str:
    """`allow` or `deny`; for an entry of a kind that is not evaluated the number of its type."""
    if step.concern is Concern.UNSUPPORTED and step.ace is not None:
        return f"type {int(step.ace.type):#04x}"
    return "allow" if step.allows else "deny"


def why(verdict: Verdict, explained: Explained) -> str:
    """The reason of a verdict in words."""
    identity, names = explained.explanation.identity, explained.names
    if verdict.because is Because.TOKEN:
        return _of_token(explained)
    if verdict.because is Because.ENDED:
        return "the account has ended"
    if verdict.because is Because.READ_ONLY:
        return f"the account {identity.name} may only look"
    if verdict.because is Because.NOT_ALLOWED:
        return f"no entry that concerns {identity.name} allows it"
    return "; ".join(dict.fromkeys(_of_step(each, explained, names) for each in verdict.steps))


def _of_token(explained: Explained) -> str:
    scope = explained.explanation.identity.scope
    assert scope is not None
    left = ", ".join(sorted(scope.rights)) or "nothing"
    where = "" if scope.queues is None else ", for some queues only"
    return f"the token {scope.token} leaves {left}{where}"


def _of_step(step: Step, explained: Explained, names: AccountNames) -> str:
    owner = "" if explained.owner is None else names.of(str(explained.owner))
    if step.reason is Reason.PRIVILEGE:
        return "administrators always may"
    if step.reason is Reason.OWNER:
        return f"the owner, {owner}, always may"
    if step.reason is Reason.NO_LIST:
        return "without a list of entries everybody may do everything"
    assert step.ace is not None
    assert step.place is not None
    who = names.of(str(step.ace.sid))
    verb = "allows" if step.allows else "denies"
    return f"entry {step.place + 1} {verb} it to {who}"


def _numbers(steps: Iterable[Step]) -> list[int]:
    return [step.place + 1 for step in steps if step.place is not None]
