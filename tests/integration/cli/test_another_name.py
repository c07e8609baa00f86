"""The computer gets another name; backups hold name and configuration."""

import json
from pathlib import Path

from rpcqm.testing import PrivateQueueManager
from rpcqm.testing.private import private_queue_manager

CONFIGURATION = 'name = "{name}"\n[storage]\nreserve = 1\n{more}'
CHANGED = "the computer's name has changed"


def _renamed(server: PrivateQueueManager, name: str) -> PrivateQueueManager:
    """The same data under another name."""
    server.stop()
    return PrivateQueueManager(
        server.data_dir, configuration=CONFIGURATION.format(name=name, more="")
    ).start()


def _names(server: PrivateQueueManager) -> list[str]:
    return [each["path_name"] for each in json.loads(server.run("queue", "list", "--json").stdout)]


def test_path_names_follow_the_name_and_the_first_start_says_so() -> None:
    with private_queue_manager(configuration=CONFIGURATION.format(name="old", more="")) as server:
        server.run("queue", "create", "orders")
        server.run("send", "orders", "--body", "apples")
        server.run("move", "orders", "orders;late")
        assert CHANGED not in server.log
        renamed = _renamed(server, "new")
        try:
            assert _names(renamed) == [r"new\private$\orders"]
            assert renamed.run("receive", "orders;late", "--format", "body").stdout == "apples"
            told = [json.loads(line) for line in renamed.log.splitlines() if CHANGED in line]
            assert [(line["before"], line["now"]) for line in told] == [("old", "new")]
            renamed.restart()
            assert renamed.log.count(CHANGED) == 1
        finally:
            renamed.stop()


def test_a_backup_holds_the_configuration_and_secrets_if_asked(tmp_path: Path) -> None:
    credentials = tmp_path / "credentials.toml"
    credentials.write_text('user = "alice"\npassword = "hidden"\n')
    credentials.chmod(0o600)
    more = f'[remote]\ncredentials_file = "{credentials}"\n'
    configuration = CONFIGURATION.format(name="mail", more=more)
    with private_queue_manager(configuration=configuration) as server:
        server.run("backup", str(tmp_path / "plain"))
        server.run("backup", str(tmp_path / "whole"), "--with-secrets")
    plain, whole = tmp_path / "plain" / "configuration", tmp_path / "whole" / "configuration"
    assert [path.name for path in plain.iterdir()] == ["rpcqm.toml"]
    assert (whole / "remote.credentials_file.toml").read_bytes() == credentials.read_bytes()
    assert (whole / "remote.credentials_file.toml").stat().st_mode & 0o777 == 0o600
    checked = server.run("config", "check", str(plain / "rpcqm.toml"))
    assert checked.returncode == 0
    told = server.run("restore", str(tmp_path / "plain"), "--data-dir", str(tmp_path / "data"))
    assert " is mail as of " in told.stdout
    assert "It was named `mail`, and the configuration here says `" in told.stdout
    assert "keys and passwords are not in the backup:" in told.stdout
    assert '  name = "mail"\n' in told.stdout
    assert "hidden" not in told.stdout
    assert not (tmp_path / "data" / "configuration").exists()
