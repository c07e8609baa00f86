"""Find words of an IDL file in the declaration of a name, and put others there.

The name is "idl.<file>.<declared name>": of a method, of a type, or of the interface (its head).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.mutations.data import Mutation, MutationError
from tests.mutations.names import ROOT
from tests.mutations.syntax import chosen

IDL = ROOT / "idl"
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"[^"]*"|[\w.-]+|\S', re.DOTALL)


@dataclass(frozen=True, slots=True)
class MutatedIdl:
    """The changed text of one IDL file."""

    name: str
    source: str


def tokens(text: str) -> list[re.Match[str]]:
    """The words of the text; notes of the loader are words too, other comments are none."""
    found = TOKEN.finditer(text)
    return [
        word
        for word in found
        if not word[0].startswith("//") and (word[0][:2] != "/*" or "rpcqm:" in word[0])
    ]


def declarations(words: Sequence[re.Match[str]]) -> Iterator[Sequence[re.Match[str]]]:
    """The declarations one after the other; the head of an interface ends with its brace."""
    depth, start, interface = 0, 0, False
    for index, word in enumerate(words):
        interface = interface or word[0] == "interface"
        if interface and word[0] == "{" and depth == 0:
            yield words[start : index + 1]
            start, interface = index + 1, False
        elif word[0] in "{[(":
            depth += 1
        elif word[0] in "}])":
            depth -= 1
        elif word[0] == ";" and depth == 0:
            yield words[start : index + 1]
            start = index + 1


def declares(declaration: Sequence[re.Match[str]], name: str) -> bool:
    """Whether the name is what is declared: after it comes a bracket, an end, or a comma."""
    texts = [word[0] for word in declaration]
    for index, text in enumerate(texts[:-1]):
        if text == name and texts[index + 1] in ("(", ";", ",", "{", "["):
            return "(" not in texts[:index] or texts[0] in ("typedef", "[")
    return False


def mutate_idl(mutation: Mutation) -> MutatedIdl:
    """The text with the mutation in it; MutationError as for Python."""
    _, file, name = mutation.at.split(".")
    path = IDL / f"{file}.idl"
    if not path.is_file():
        raise MutationError(f"there is no {path.name}")
    text = path.read_text("utf-8")
    old = [word[0] for word in tokens(mutation.old)]
    spots: list[tuple[int, int]] = []
    for declaration in declarations(tokens(text)):
        if declares(declaration, name):
            spots += _spots(declaration, old)
    start, end = chosen(spots, mutation.nth)
    return MutatedIdl(file, text[:start] + mutation.new + text[end:])


def _spots(declaration: Sequence[re.Match[str]], old: Sequence[str]) -> Iterator[tuple[int, int]]:
    texts = [word[0] for word in declaration]
    for index in range(len(texts) - len(old) + 1):
        if texts[index : index + len(old)] == old:
            yield declaration[index].start(), declaration[index + len(old) - 1].end()
