"""`rpcqm service install`: what it writes."""

import os
from configparser import ConfigParser
from pathlib import Path

import pytest

from rpcqm.base.admission import room_for_connections
from rpcqm.cli.main import main
from rpcqm.config import check
from rpcqm.config.limits_section import LimitsSection

UNIT = "etc/systemd/system/rpcqm.service"
SETTINGS = "etc/rpcqm/rpcqm.toml"


def directives(text: str) -> dict[str, list[str]]:
    """The directives of a unit's section [Service], each with its values."""
    found: dict[str, list[str]] = {}
    for line in text.partition("[Service]")[2].partition("[Install]")[0].splitlines():
        name, is_directive, value = line.partition("=")
        if is_directive and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_runs_this_installation_as_a_user_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["service", "install", "--print", "--user", "mq"]) == 0
    service = directives(capsys.readouterr().out)
    command, *options = service["ExecStart"][0].split()
    assert os.access(command, os.X_OK)
    assert options == ["serve", "--config", "/etc/rpcqm/rpcqm.toml"]
    assert service["Type"] == ["notify"]
    assert service["User"] == ["mq"]
    assert service["CapabilityBoundingSet"] == ["CAP_NET_BIND_SERVICE"]
    assert service["AmbientCapabilities"] == ["CAP_NET_BIND_SERVICE"]
    assert int(service["WatchdogSec"][0]) > 0
    assert service["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert service["StateDirectory"] == service["ConfigurationDirectory"] == ["rpcqm"]


def test_the_unit_of_triggers_runs_beside_the_queue_manager_as_another_user(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["triggers", "install", "--print", "--user", "doer"]) == 0
    service = directives(capsys.readouterr().out)
    command, *options = service["ExecStart"][0].split()
    assert os.access(command, os.X_OK)
    assert options == ["triggers", "run", "--data-dir", "/var/lib/rpcqm"]
    assert (service["User"], service["CapabilityBoundingSet"]) == (["doer"], [""])
    assert service["KillMode"] == ["control-group"]


def test_an_image_gets_the_files_of_triggers(tmp_path: Path) -> None:
    assert main(["triggers", "install", "--root", str(tmp_path)]) == 0
    written = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert written == {
        "etc/systemd/system/rpcqm-triggers.service",
        "etc/sysusers.d/rpcqm-triggers.conf",
    }


def test_an_image_gets_its_files_and_nothing_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["service", "install", "--root", str(tmp_path)]) == 0
    written = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert written == {UNIT, SETTINGS, "etc/sysusers.d/rpcqm.conf"}
    assert f"{tmp_path / UNIT} is written." in capsys.readouterr().out
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read(tmp_path / UNIT)
    assert unit.sections() == ["Unit", "Service", "Install"]


def test_the_configuration_is_a_good_one_and_an_existing_one_is_kept(tmp_path: Path) -> None:
    settings = tmp_path / SETTINGS
    main(["service", "install", "--root", str(tmp_path)])
    configuration = check(settings)
    assert (configuration.data_dir, configuration.epm_port) == (Path("/var/lib/rpcqm"), 135)
    settings.write_text("epm_port = 1135\n")
    main(["service", "install", "--root", str(tmp_path)])
    assert settings.read_text() == "epm_port = 1135\n"


@pytest.mark.parametrize("name", ["root", "", "a b", "-x"])
def test_root_is_no_user_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "install", "--print", f"--user={name}"]) == 2
    assert f"`{name}` is no name for a user of its own" in capsys.readouterr().err


def test_only_root_installs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["service", "install"]) == 2
    assert "takes root" in capsys.readouterr().err


def test_a_system_without_systemd_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("rpcqm.cli.service.own_command", lambda: Path("/opt/rpcqm/bin/rpcqm"))
    monkeypatch.setattr("rpcqm.cli.service._write", lambda file, root: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["service", "install"]) == 1
    assert "There is no `systemd-sysusers` here" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["/tmp/clone/bin", "/var/tmp/bin"])
def test_what_the_service_could_not_see_is_not_installed(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rpcqm.cli.service.own_command", lambda: Path(place) / "rpcqm")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert main(["service", "install"]) == 1
    assert "install rpcqm elsewhere, such as in /opt/rpcqm." in capsys.readouterr().err


def test_the_unit_allows_enough_open_files_for_the_connections_that_are_let_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["service", "install", "--print"])
    (allowed,) = directives(capsys.readouterr().out)["LimitNOFILE"]
    assert room_for_connections(int(allowed)) >= LimitsSection().connections
