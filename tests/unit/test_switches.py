"""The switches: settings that lower safety, and who is told of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.cli.checks import CheckedMachine, Level
from rpcqm.cli.safety_checks import check_keys, check_switches
from rpcqm.config import Configuration, RemoteSection, SecuritySection
from rpcqm.config.schema import BinarySection, Setting, settings, switches, switches_on

SAFE_TO_TURN = {
    "security.new_remote_read_server_deny_workgroup_client",
    "security.hardened_security",
    "binary.ping",
    "remote.kerberos",
    "dcom.empty_is_nothing",
}
"""Settings that are off by default and lower nothing when they are on."""

GUARDED = ("security", "binary", "remote", "srmp", "dcom")


def test_nothing_is_on_by_default() -> None:
    assert switches_on(Configuration()) == []
    told = list(check_switches(CheckedMachine(Configuration(), None)))
    assert [finding.level for finding in told] == [Level.GOOD]


@pytest.mark.parametrize("setting", list(settings()), ids=lambda setting: setting.key)
def test_what_is_off_by_default_is_a_switch_or_known_to_be_safe(setting: Setting) -> None:
    """A new setting cannot open anything without being told of."""
    off = setting.kind is bool and setting.default == "false" and setting.path[0] in GUARDED
    assert not off or bool(setting.about.opens) is not (setting.key in SAFE_TO_TURN)


@pytest.mark.parametrize("setting", list(switches()), ids=lambda setting: setting.key)
def test_what_a_switch_opens_is_a_sentence(setting: Setting) -> None:
    assert setting.about.opens.endswith(".")
    assert setting.about.opens[0].isupper()


def test_every_switch_that_is_on_is_named_with_what_it_opens() -> None:
    configuration = replace(
        Configuration(),
        security=SecuritySection(debug_rpc=True, supporting_server=True),
        remote=RemoteSection(allow_unauthenticated=True),
    )
    on = ["security.debug_rpc", "security.supporting_server", "remote.allow_unauthenticated"]
    assert [setting.key for setting in switches_on(configuration)] == on
    told = list(check_switches(CheckedMachine(configuration, None)))
    assert [finding.level for finding in told] == [Level.WARNING] * 3
    for finding, setting in zip(told, switches_on(configuration), strict=True):
        assert setting.key in finding.text
        assert setting.about.opens in finding.text


@pytest.mark.parametrize("value", ["auto", "anonymous", "claimed"])
def test_only_the_value_that_opens_something_is_named(value: str) -> None:
    configuration = replace(Configuration(), binary=BinarySection(unsigned_senders=value))
    on = [setting.key for setting in switches_on(configuration)]
    assert on == (["binary.unsigned_senders"] if value == "claimed" else [])


@pytest.mark.parametrize(("mode", "level"), [(0o600, Level.GOOD), (0o644, Level.PROBLEM)])
def test_keys_that_others_may_read_are_a_problem(tmp_path: Path, mode: int, level: Level) -> None:
    keytab = tmp_path / "keytab"
    keytab.touch()
    keytab.chmod(mode)
    configuration = replace(Configuration(), security=SecuritySection(keytab=keytab))
    (finding,) = check_keys(CheckedMachine(configuration, None))
    assert finding.level is level
