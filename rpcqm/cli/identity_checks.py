"""What `rpcqm doctor` says of identities: the data directory's own, and those of others."""

from collections.abc import Iterator

from rpcqm.cli.asking import NotAnsweredError, attention_of
from rpcqm.cli.checks import Check, CheckedMachine, CheckResult, Level
from rpcqm.store.directory_mark import Standing, look_at
from rpcqm.store.errors import StoreError

_SUBJECT = "identity"
_SHOWN = {
    "identity_shared": Level.PROBLEM,
    "queue_unusable": Level.PROBLEM,
    "quota_full": Level.PROBLEM,
    "quota_low": Level.WARNING,
    "copies_lost": Level.WARNING,
    "certificate_expired": Level.PROBLEM,
    "certificate_expires": Level.WARNING,
    "maintenance": Level.WARNING,
    "disconnected": Level.WARNING,
    "trigger_failing": Level.WARNING,
    "triggers_unserved": Level.WARNING,
}
"""What needs attention, is no matter of load, and how bad it is."""
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
    """Orders that hold, identities of two queue managers, queues that cannot be used, quotas."""
    if patient.running is None:
        return
    try:
        found = attention_of(patient.running)
    except NotAnsweredError as error:
        text = f"What needs attention cannot be found out: {error}."
        yield CheckResult("attention", Level.WARNING, text)
        return
    for each in found:
        if each["code"] in _SHOWN:
            yield CheckResult("attention", _SHOWN[each["code"]], str(each["text"]))


IDENTITY_CHECKS: tuple[Check, ...] = (check_mark, check_attention)
