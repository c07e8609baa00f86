"""What `rpcqm doctor` says of safety: which switches are on."""

from collections.abc import Iterator

from rpcqm.cli.checks import Check, Finding, Level, Patient
from rpcqm.config.switches import switches_on
from rpcqm.rpc.providers import check_private
from rpcqm.rpc.security import AuthenticationError


def check_switches(patient: Patient) -> Iterator[Finding]:
    """Every switch that is on, and what it opens."""
    on = switches_on(patient.configuration)
    for setting in on:
        yield Finding("switches", Level.WARNING, f"`{setting.key}` is on. {setting.about.opens}")
    if not on:
        yield Finding("switches", Level.GOOD, "No switch that lowers safety is on.")


def check_keys(patient: Patient) -> Iterator[Finding]:
    """Whether the Kerberos keys are the service's own secret."""
    keytab = patient.configuration.security.keytab
    if keytab is None:
        return
    try:
        check_private(keytab)
    except AuthenticationError as error:
        yield Finding("keytab", Level.PROBLEM, f"The keys in {keytab} are not private: {error}.")
    else:
        yield Finding("keytab", Level.GOOD, f"The keys in {keytab} are private.")


SAFETY_CHECKS: tuple[Check, ...] = (check_switches, check_keys)
