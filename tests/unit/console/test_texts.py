"""All words of the pages are in one file, and no other."""

import re
from pathlib import Path

import rpcqm.console
from rpcqm.codec.bodies import described
from rpcqm.console.texts import texts

ROOM = Path(rpcqm.console.__file__).parent
TEMPLATES = sorted((ROOM / "templates").glob("*.html"))
NAMES = {"rpcqm", "KiB", "DeadLetter", "XactDeadLetter"}
"""Words that are names, the same in each language."""
_EXPRESSION = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}", re.DOTALL)
_SPOKEN = re.compile(r'(?:aria-label|title|placeholder|alt)="([^"]*)"')


def test_templates_have_no_words_of_their_own() -> None:
    found: dict[str, set[str]] = {}
    for path in TEMPLATES:
        plain = _EXPRESSION.sub(" ", path.read_text("utf-8"))
        spoken = " ".join(_SPOKEN.findall(plain))
        shown = re.sub(r"&[a-z]+;", " ", re.sub(r"<[^>]*>", " ", plain))
        if words := set(re.findall("[A-Za-z]{2,}", f"{shown} {spoken}")) - NAMES:
            found[path.name] = words
    assert found == {}


def test_every_word_that_is_asked_for_is_there() -> None:
    for path in TEMPLATES:
        for key in re.findall(r'\bt\("([a-z_.]+)"[,)]', path.read_text("utf-8")):
            assert key in texts(), f"{path.name}: {key}"
    for path in ROOM.rglob("*.py"):
        for key in re.findall(r'(?<![.\w])text\("([a-z_.]+)"[,)]', path.read_text("utf-8")):
            assert key in texts(), f"{path.name}: {key}"


def test_every_property_of_a_message_has_a_name() -> None:
    told = re.findall(r'^        "([a-z_]+)":', Path(described.__file__).read_text("utf-8"), re.M)
    shown = {each for each in told if not each.startswith(("body", "value", "label"))}
    assert {f"property.{each}" for each in shown} <= set(texts())
    assert len(shown) > 15
