"""The bounds of an XML body, checked during a first reading, before a tree is made of it (G102)."""

from xml.parsers import expat

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.budget import BudgetError

MAXIMUM_DEPTH = 64
"""Elements of XML within each other.

Bound `body.xml_depth` [levels]: the body is refused with an error before anything is made of it.
"""
MAXIMUM_NODES = 524_288
"""Elements and attributes of a body in XML.

Bound `body.xml_nodes` [nodes]: the body is refused with an error before anything is made of it.
"""
MAXIMUM_NAME = 1_024
"""Size of a name in XML, with its namespace.

Bound `body.xml_name` [characters]: the body is refused with an error before anything is made of it.
"""
MAXIMUM_NAMES = 1 << 20
"""Size of all names that differ in a body in XML.

Bound `body.xml_names` [characters]: the body is refused with an error before anything is made of
it.
"""


def check_bounds(body: bytes, nodes: int = MAXIMUM_NODES, encoding: str | None = None) -> int:
    """Read a body without keeping it; returns its number of elements and attributes.

    At most `nodes` are allowed. `encoding` overrides the document's. Raises DecodeError for one
    that has a document type or goes beyond a bound; ExpatError, ValueError or LookupError (for an
    unknown encoding) if it is not XML.
    """
    parser = expat.ParserCreate(encoding, "}")
    bounds = _Bounds(nodes)
    parser.StartDoctypeDeclHandler = bounds.document_type
    parser.StartElementHandler = bounds.start
    parser.EndElementHandler = bounds.end
    parser.ordered_attributes = True
    parser.Parse(body, True)
    return bounds.nodes


class _Bounds:
    def __init__(self, most: int) -> None:
        self._most = most
        self._depth = 0
        self.nodes = 0
        self._names: set[str] = set()
        self._characters = 0

    def document_type(self, *_: object) -> None:
        raise DecodeError("XML with a document type")

    def start(self, name: str, attributes: list[str]) -> None:
        self._depth += 1
        self.nodes += 1 + len(attributes) // 2
        if self._depth > MAXIMUM_DEPTH:
            raise BudgetError("XML that is nested too deeply")
        if self.nodes > self._most:
            raise BudgetError("XML with too many elements and attributes")
        self._name(name)
        for attribute in attributes[::2]:
            self._name(attribute)

    def _name(self, name: str) -> None:
        if name in self._names:
            return
        self._names.add(name)
        self._characters += len(name)
        if len(name) > MAXIMUM_NAME or self._characters > MAXIMUM_NAMES:
            raise BudgetError("XML with names that are too long")

    def end(self, _: str) -> None:
        self._depth -= 1
