"""What `rpcqm doctor` says of safety: which switches are on."""

from collections.abc import Iterator

from rpcqm.cli.checks import Check, Finding, Level, Patient
from rpcqm.config.switches import switches_on


def check_switches(patient: Patient) -> Iterator[Finding]:
    """Every switch that is on, and what it opens."""
    on = switches_on(patient.configuration)
    for setting in on:
        yield Finding("switches", Level.WARNING, f"`{setting.key}` is on. {setting.about.opens}")
    if not on:
        yield Finding("switches", Level.GOOD, "No switch that lowers safety is on.")


SAFETY_CHECKS: tuple[Check, ...] = (check_switches,)
