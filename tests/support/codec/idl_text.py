"""Interfaces of a test's own, from IDL text."""

import textwrap
from collections.abc import Callable

from rpcqm.codec.idl.load import load_idl, read_idl
from rpcqm.codec.idl.tree import IdlFile
from rpcqm.codec.interface import Interface

_HEADER = """
    import "dtyp.idl", "mqmq.idl";
    [uuid(5f1d3b1e-8d0e-4c7b-9d9f-6a1c6b5d9a03), version(1.2), {attributes}]
    interface example
    {{
"""


def file_of(body: str, attributes: str = "pointer_default(unique)") -> IdlFile:
    """The tree of an interface with some body."""
    text = _HEADER.format(attributes=attributes) + textwrap.dedent(body) + "\n}\n"
    return read_idl(text, "example.idl")


def interface_of(
    body: str, attributes: str = "pointer_default(unique)", ms_union: bool = False
) -> Interface:
    """An interface with some body."""
    return Interface(file_of(body, attributes).interfaces["example"], ms_union)


def loader(**texts: str) -> Callable[[str], IdlFile]:
    """Finds imported files among some texts, and else in idl/."""

    def load(name: str) -> IdlFile:
        if name in texts:
            return read_idl(textwrap.dedent(texts[name]), f"{name}.idl", load)
        return load_idl(name)

    return load
