"""What `rpcqm doctor` says of certificates before a start; one that runs tells of them itself."""

import time
from collections.abc import Iterator

from rpcqm.base.text import iso_time
from rpcqm.cli.checks import Check, CheckedMachine, CheckResult, Level

_SUBJECT = "certificates"


def check_certificates(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Whether those that the configuration names are there, and how long they are valid (G659)."""
    # Only now: these bring the whole service, and every command loads this module.
    from rpcqm.operations.attention import CERTIFICATE_SOON
    from rpcqm.service.certificate_ends import certificate_ends, certificate_files

    if patient.running is not None:
        return  # they are in what needs attention, with those that it has taken over since
    ends, now = certificate_ends(patient.configuration), time.time() * 1000
    for setting, path in certificate_files(patient.configuration).items():
        if setting not in ends:
            text = f"That of {setting} cannot be read, or {path} has none."
            yield CheckResult(_SUBJECT, Level.PROBLEM, text)
            continue
        day = (iso_time(ends[setting] / 1000) or "")[:10]
        left = ends[setting] - now
        if left <= 0:
            text = f"That of {setting} was valid until {day}: others refuse it."
            yield CheckResult(_SUBJECT, Level.PROBLEM, text)
        elif left < CERTIFICATE_SOON:
            yield CheckResult(
                _SUBJECT, Level.WARNING, f"That of {setting} is valid until {day} only."
            )
        else:
            yield CheckResult(_SUBJECT, Level.GOOD, f"That of {setting} is valid until {day}.")


CERTIFICATE_CHECKS: tuple[Check, ...] = (check_certificates,)
