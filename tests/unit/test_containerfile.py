"""packaging/Containerfile says what is true of `rpcqm serve`."""

import fnmatch
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.binary.ping import PING_PORT
from rpcqm.config import load
from rpcqm.config.schema import settings
from rpcqm.testing import private_queue_manager
from tests.unit.test_packaging import ROOT

CONTEXT = ("idl/remoteread.idl", "rpcqm/__main__.py", "README.md", "pyproject.toml", "setup.cfg")


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """Instructions in order, continued lines joined, comments left out."""
    text = (ROOT / "packaging/Containerfile").read_text("utf-8")
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    words = (line.partition(" ") for line in joined.splitlines() if line)
    return [(name, rest.strip()) for name, _, rest in words]


@pytest.fixture(scope="module")
def environment(instructions: list[tuple[str, str]]) -> dict[str, str]:
    pairs = (pair for name, rest in instructions if name == "ENV" for pair in shlex.split(rest))
    return dict(pair.split("=", 1) for pair in pairs)


def the(instructions: list[tuple[str, str]], wanted: str) -> str:
    (found,) = [rest for name, rest in instructions if name == wanted]
    return found


def test_every_variable_is_a_setting(environment: dict[str, str]) -> None:
    ours = {name for name in environment if name.startswith("RPCQM_")}
    assert ours
    assert ours <= {setting.variable for setting in settings()}


def test_every_port_that_is_listened_on_is_exposed(
    instructions: list[tuple[str, str]], environment: dict[str, str]
) -> None:
    configuration = load({}, None, environment)
    doors = ("epm_port", "rpc_port", "qm2qm_port", "binary_port")
    ports = {getattr(configuration, door) for door in doors}
    exposed = set(the(instructions, "EXPOSE").split())
    assert exposed == {str(port) for port in ports} | {f"{PING_PORT}/udp"}
    assert configuration.http_port < 0


def test_nothing_in_the_container_needs_root(
    instructions: list[tuple[str, str]], environment: dict[str, str]
) -> None:
    assert the(instructions, "USER") != "root"
    assert all(int(port.split("/")[0]) >= 1024 for port in the(instructions, "EXPOSE").split())
    assert the(instructions, "VOLUME") == environment["RPCQM_DATA_DIR"]


def test_the_ports_of_the_example_are_the_exposed_ones(
    instructions: list[tuple[str, str]],
) -> None:
    text = (ROOT / "packaging/Containerfile").read_text("utf-8")
    mapped = dict(pair[::-1] for pair in re.findall(r"-p (\d+):(\d+)", text))
    tcp = {port for port in the(instructions, "EXPOSE").split() if "/" not in port}
    assert mapped == {port: "135" if port == "1135" else port for port in tcp}


def test_what_it_runs_is_a_command(instructions: list[tuple[str, str]]) -> None:
    (check,) = re.findall(r"CMD (\[.*\])", the(instructions, "HEALTHCHECK"))
    assert json.loads(the(instructions, "ENTRYPOINT")) == ["rpcqm"]
    assert json.loads(the(instructions, "CMD")) == ["serve"]
    program, option, text = json.loads(check)
    assert (program, option) == ("python", "-c")
    compile(text, "the health check", "exec")


def test_the_health_check_asks_the_console_whether_it_is_ready(
    instructions: list[tuple[str, str]], environment: dict[str, str]
) -> None:
    """It is run as the image does, against a queue manager, and when that is gone."""
    (check,) = re.findall(r"CMD (\[.*\])", the(instructions, "HEALTHCHECK"))
    address = f"127.0.0.1:{environment['RPCQM_CONSOLE_PORT']}"
    assert load({}, None, environment).console.host == "127.0.0.1"
    text = json.loads(check)[2]
    assert f"http://{address}/readyz" in text
    with private_queue_manager(("--console-port", "0")) as running:
        host, port = running.endpoint("console")
        here = text.replace(address, f"{host}:{port}")
        assert subprocess.run([sys.executable, "-c", here], check=False).returncode == 0
    gone = subprocess.run([sys.executable, "-c", here], capture_output=True, check=False)
    assert gone.returncode != 0


def test_the_python_of_the_image_will_do(instructions: list[tuple[str, str]]) -> None:
    name, _, image = the(instructions, "ARG").partition("=")
    assert name == "BASE"
    assert re.search(r"/python:3\.1[1-9]-slim$", image)


def test_every_stage_is_built_on_the_image_that_can_be_pinned(
    instructions: list[tuple[str, str]],
) -> None:
    images = [rest.split()[0] for name, rest in instructions if name == "FROM"]
    assert images == ["${BASE}", "${BASE}"]


def test_nothing_in_the_image_gives_more_rights_to_who_runs_it(
    instructions: list[tuple[str, str]],
) -> None:
    """No file is setuid or setgid, and this is done before the user is left."""
    order = [name for name, rest in instructions if name == "USER" or "chmod a-s" in rest]
    assert order == ["RUN", "USER"]


def rules() -> Iterator[tuple[bool, str]]:
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.startswith("!"), line.removeprefix("!").removeprefix("**/")


def is_sent(path: str) -> bool:
    sent = True
    for admits, pattern in rules():
        places = [path, *map(str, Path(path).parents), *Path(path).parts]
        if any(fnmatch.fnmatch(place, pattern) for place in places):
            sent = admits
    return sent


def test_the_context_is_what_the_image_is_made_of() -> None:
    assert all(map(is_sent, CONTEXT))
    assert all((ROOT / path).exists() for path in CONTEXT)
    others = (".git/HEAD", ".venv/bin/python", "var/messages", "tests/conftest.py", "build/lib")
    assert not any(map(is_sent, (*others, "rpcqm/__pycache__/main.pyc")))
