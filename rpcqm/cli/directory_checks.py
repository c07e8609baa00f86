"""What `rpcqm doctor` says of a real directory, where one is configured."""

import stat
from collections.abc import Iterator

from rpcqm.cli.checks import Check, CheckedMachine, CheckResult, Level
from rpcqm.cli.directory_reading import steps_of
from rpcqm.cli.errors import CommandError

_SUBJECT = "directory"


def check_keytab(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Whether the keys of the machine's account are nobody else's."""
    path = patient.configuration.directory.keytab
    if not patient.configuration.directory.domain or path is None:
        return
    try:
        mode = path.stat().st_mode
    except OSError as error:
        text = f"{path} cannot be read: {error.strerror}."
        yield CheckResult(_SUBJECT, Level.PROBLEM, text)
        return
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        text = f"Everybody may read or write the keys in {path}: `chmod o-rw {path}`."
        yield CheckResult(_SUBJECT, Level.PROBLEM, text)


def check_directory(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Each step on the way to the directory."""
    if not patient.configuration.directory.domain:
        return
    try:
        steps = steps_of(patient.configuration)
    except CommandError as error:
        yield CheckResult(_SUBJECT, Level.PROBLEM, str(error))
        return
    for step in steps:
        level = Level.WARNING if step.remedy else Level.GOOD
        text = f"{step.name}: {step.text}."
        if step.remedy:
            text = f"{text} {step.remedy}"
        yield CheckResult(_SUBJECT, Level.PROBLEM if step.failed else level, text)


DIRECTORY_CHECKS: tuple[Check, ...] = (check_keytab, check_directory)
