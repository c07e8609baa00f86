"""All words of the pages are in one file, and no other."""

import ast
import re
from pathlib import Path
from string import Formatter

import rpcqm.console
from rpcqm.base.errors import HResult
from rpcqm.codec.bodies import described
from rpcqm.codec.security.permissions import RIGHTS
from rpcqm.console.texts import text, texts

ROOM = Path(rpcqm.console.__file__).parent
TEMPLATES = sorted((ROOM / "templates").glob("*.html"))
NAMES = {"rpcqm", "KiB", "DeadLetter", "XactDeadLetter"}
"""Words that are names, the same in each language."""
TECHNICAL = {
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "need validation",  # a state's name, which becomes a key
}
"""Headers and names of the protocol."""
_SENTENCE = re.compile("[A-Za-z]{2,} [A-Za-z]{2,}")
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


def test_pages_have_no_sentences_of_their_own() -> None:
    """Names, patterns and headers apart: what has a space between two words is for people."""
    found: dict[str, list[str]] = {}
    for path in ROOM.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        told = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        written = [
            each.value
            for each in ast.walk(tree)
            if isinstance(each, ast.Constant)
            and isinstance(each.value, str)
            and id(each) not in told
        ]
        if sentences := [
            each for each in written if _SENTENCE.search(each) and each not in TECHNICAL
        ]:
            found[path.name] = sentences
    assert found == {}


def test_one_thing_has_words_of_its_own() -> None:
    assert text("queue.count", number="2", size="5 B") == "2 messages, 5 B"
    assert text("queue.count", number="1", size="5 B") == "1 message, 5 B"
    assert text("flight.total", number=1) == "1 lease"
    ones = [each.removesuffix("_one") for each in texts() if each.endswith("_one")]
    assert {each for each in ones if "{number}" not in texts()[each]} == set()


def test_every_right_is_told_in_plain_words() -> None:
    assert {f"right.{word.replace('-', '_')}" for word in RIGHTS} <= set(texts())


def test_every_property_of_a_message_has_a_name() -> None:
    told = re.findall(r'^        "([a-z_]+)":', Path(described.__file__).read_text("utf-8"), re.M)
    told += re.findall(r'told\["([a-z_]+)"\] = ', Path(described.__file__).read_text("utf-8"))
    apart = ("body", "value", "label", "undecoded")
    shown = {each for each in told if not each.startswith(apart)}
    assert {f"property.{each}" for each in shown} <= set(texts())
    assert len(shown) > 15
    assert "traceparent" in shown


def test_no_sentence_ends_twice() -> None:
    """Meanings of codes end with a full stop, and are put into sentences that end with one."""
    meaning = HResult.MQ_ERROR_QUEUE_NOT_FOUND.meaning
    assert meaning.endswith(".")
    for key, words in texts().items():
        names = {name for _, name, _, _ in Formatter().parse(words) if name}
        said = text(key, **dict.fromkeys(names, meaning))
        assert ".." not in said, key
