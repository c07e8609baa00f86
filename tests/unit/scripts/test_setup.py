"""scripts/setup, with a stand-in for Python that makes environments and installs packages."""

import os
import pty
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = ("scripts/setup", "scripts/run", "setup.cfg", "pyproject.toml", "requirements.lock")
PYTHON = """#!/bin/bash
case "$*" in
*version_info*11*) exit 0 ;;
*version_info*) echo "$MINOR" ;;
"-m venv .venv")
    [[ -z $NO_VENV ]] || { echo "ensurepip is not available"; exit 1; }
    mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/pip ;;
"-m pip install "*)
    echo "$*" >> pip.log
    echo "pip writes to stdout"
    if [[ -n $FAILS && $* == *$FAILS* ]]; then
        echo "ERROR: no such version" >&2
        exit 1
    fi
    printf '#!/bin/sh\\necho "rpcqm $*"\\n' > .venv/bin/rpcqm && chmod +x .venv/bin/rpcqm ;;
esac
"""
LOCK = """# 2026-01-31 Python 3.11
# Written.
lark==1.0
numpy==2.0  # spark, test
mypy==3  # test
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a script of a clone in which nothing was set up; a lock of three packages."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "requirements.lock").write_text(LOCK)
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)

    def run(
        *arguments: str, terminal: bool = False, **told: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {"MINOR": "3.11", "NO_VENV": "", "FAILS": "", "PYTHON": str(python), **told}
        command = ["bash", *(arguments or ["scripts/setup"])]
        ours, theirs = pty.openpty()
        with os.fdopen(ours), os.fdopen(theirs) as screen:
            return subprocess.run(
                command,
                cwd=tmp_path,
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                stderr=screen if terminal else subprocess.PIPE,
                text=True,
                check=False,
            )

    return run


def installed(place: Path) -> list[str]:
    """The arguments of each `pip install`."""
    return (place / "pip.log").read_text().splitlines()


def test_each_long_step_is_said_before_it_and_nothing_when_all_is_done(run: Run) -> None:
    first = run("scripts/setup", "test")
    assert (first.returncode, first.stdout) == (0, "")
    making, installing, *rest = first.stderr.splitlines()
    assert making == "scripts/setup: making the environment .venv with Python 3.11 (some seconds)"
    assert installing.startswith("scripts/setup: installing rpcqm[test] into .venv: 3 packages, ")
    assert rest == ["pip writes to stdout", "scripts/setup: done"]
    again = run("scripts/setup", "test")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


@pytest.mark.parametrize(("extra", "packages"), [("", 1), ("spark", 2), ("kerberos,test", 3)])
def test_it_counts_the_packages_of_what_is_asked_for(run: Run, extra: str, packages: int) -> None:
    assert f" into .venv: {packages} packages, " in run("scripts/setup", extra).stderr


@pytest.mark.parametrize("terminal", [True, False])
def test_pip_shows_its_progress_on_a_terminal_only(
    run: Run, tmp_path: Path, terminal: bool
) -> None:
    run(terminal=terminal)
    (arguments,) = installed(tmp_path)
    assert ("--quiet" in arguments) is not terminal


def test_the_versions_of_the_lock_are_installed(run: Run, tmp_path: Path) -> None:
    run()
    assert all("--constraint requirements.lock" in each for each in installed(tmp_path))
    with (tmp_path / "requirements.lock").open("a") as lock:
        lock.write("uvloop==1\n")
    run()
    assert len(installed(tmp_path)) == 2


def test_a_pip_that_fails_is_the_last_word_and_tried_again(run: Run, tmp_path: Path) -> None:
    failed = run(FAILS="install")
    assert failed.returncode == 1
    *_, error, last = failed.stderr.splitlines()
    assert error == "ERROR: no such version"
    assert last.startswith("scripts/setup: pip could not install what rpcqm needs: ")
    assert len(installed(tmp_path)) == 1
    assert run().returncode == 0


def test_another_python_that_cannot_have_the_versions_gets_the_newest(
    run: Run, tmp_path: Path
) -> None:
    told = run(MINOR="3.14", FAILS="--constraint")
    assert told.returncode == 0
    assert "requirements.lock was written with Python 3.11, and its versions cannot" in told.stderr
    first, second = installed(tmp_path)
    assert "--constraint" in first
    assert "--constraint" not in second
    assert run(MINOR="3.14").stderr == ""


def test_without_venv_it_says_which_package_has_it(run: Run) -> None:
    failed = run(NO_VENV="1")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].endswith("Debian has venv in the package python3-venv.")


def test_an_environment_whose_making_was_interrupted_is_made_again(
    run: Run, tmp_path: Path
) -> None:
    assert run().returncode == 0
    (tmp_path / ".venv/bin/pip").unlink()
    (tmp_path / ".venv/.set-up").unlink()
    assert "making the environment" in run().stderr


def test_run_says_what_it_starts_and_how_it_ends(run: Run) -> None:
    started = run("scripts/run", "--version")
    assert started.stdout.endswith(" --epm-port 1135 --version\n")
    assert started.stderr.splitlines()[-1].startswith("scripts/run: starting the queue manager")
    again = run("scripts/run")
    assert len(again.stderr.splitlines()) == 1
