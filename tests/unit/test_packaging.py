"""What `pip install .` carries."""

from configparser import ConfigParser
from pathlib import Path

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
