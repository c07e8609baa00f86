"""What `pip install .` carries."""

from configparser import ConfigParser
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def test_every_package_is_listed_for_installation() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "rpcqm").rglob("__init__.py")
    }
    assert found | {"rpcqm.idl"} == listed


def requirements() -> list[str]:
    """Every requirement, of every extra too."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    lists = [config["options"]["install_requires"], *config["options.extras_require"].values()]
    return [line for each in lists for line in each.split("\n") if line]


@pytest.mark.parametrize("requirement", requirements())
def test_every_requirement_has_an_upper_bound(requirement: str) -> None:
    operators = {each.operator for each in Requirement(requirement).specifier}
    assert operators & {"<", "<=", "~=", "=="}


def test_pyspnego_is_bounded_below_its_next_minor_version() -> None:
    """We use functions of it that it does not promise."""
    (bound,) = [each for each in requirements() if each.startswith("pyspnego")]
    specifier = Requirement(bound).specifier
    major, minor = version("pyspnego").split(".")[:2]
    assert f"{major}.{minor}.0" in specifier
    assert f"{major}.{int(minor) + 1}.0" not in specifier
