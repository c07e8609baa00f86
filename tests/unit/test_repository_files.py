"""Files for those who carry on: forms, hooks, news and scripts say what is there."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
SCRIPTS = sorted(
    each.name
    for each in (ROOT / "scripts").iterdir()
    if each.is_file() and each.stat().st_mode & 0o100
)
PATHS = re.compile(r"(?<![\w/.-])((?:scripts|docs|tests|newsfragments|\.ci)/[\w./-]*\w|[A-Z]+\.md)")


def kinds_of_news() -> set[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
    return {each["directory"] for each in settings["type"]}


@pytest.mark.parametrize(
    "fragment", sorted((ROOT / "newsfragments").glob("+*")), ids=lambda path: path.name
)
def test_a_piece_of_news_is_of_a_kind_and_says_something(fragment: Path) -> None:
    found = re.fullmatch(r"\+[a-z0-9-]+\.([a-z]+)\.md", fragment.name)
    assert found is not None
    assert found[1] in kinds_of_news()
    text = fragment.read_text("utf-8").strip()
    assert text
    assert len(text) < 1_000


def test_the_workflow_runs_what_ci_runs_and_nothing_else() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[-1] == ".ci/run"
    assert not [each for each in commands if "pytest" in each or "ruff" in each]
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_form_asks_for_what_is_needed(form: Path) -> None:
    told = yaml.safe_load(form.read_text("utf-8"))
    if form.name == "config.yml":
        assert told["blank_issues_enabled"] is False
        return
    assert {"name", "description", "body"} <= told.keys()
    needed = [each for each in told["body"] if each.get("validations", {}).get("required")]
    assert len(needed) >= 2


@pytest.mark.parametrize(
    "page",
    [
        *FORMS,
        ROOT / ".github" / "pull_request_template.md",
        ROOT / ".gitattributes",
        ROOT / ".pre-commit-config.yaml",
    ],
    ids=lambda path: path.name,
)
def test_what_is_named_is_there(page: Path) -> None:
    for name in PATHS.findall(page.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def test_the_scripts_are_listed_each_with_what_it_does() -> None:
    done = subprocess.run([ROOT / "scripts" / "help"], capture_output=True, text=True, check=True)
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines())
    assert set(lines) == {f"scripts/{name}" for name in SCRIPTS}
    for name, text in lines.items():
        assert len(text) > 20, name
    wrong = subprocess.run([ROOT / "scripts" / "help", "x"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
