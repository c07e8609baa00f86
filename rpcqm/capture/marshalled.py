"""What BSTR, VARIANT and SAFEARRAY are on the wire, for those who read stubs field by field."""

import functools

from rpcqm.codec.idl.load import load_idl
from rpcqm.codec.idl.tree import (
    Array,
    Integer,
    Pointer,
    PointerKind,
    StructureType,
    WireMarshal,
)

_STRUCTURES = {
    "BSTR": "FLAGGED_WORD_BLOB",
    "VARIANT": "wireVARIANTStr",
    "SAFEARRAY": "wireSAFEARRAYStr",
}
_CHARACTER = Integer("wchar_t", 2, character=True)


def wire_form(made: WireMarshal) -> Pointer:
    """The pointer to a structure that stands for a value of automation; always the same one."""
    return _wire_form(made.name)


@functools.cache
def _wire_form(name: str) -> Pointer:
    structure = load_idl("oaut").types[_STRUCTURES[name]]
    assert isinstance(structure, StructureType)
    return Pointer(PointerKind.UNIQUE, _as_text(structure) if name == "BSTR" else structure)


def _as_text(blob: StructureType) -> StructureType:
    """The same structure with characters for its words: a BSTR is a text."""
    *counts, data = blob.fields
    assert isinstance(data.type, Array)
    text = data.changed(type=data.type.changed(element=_CHARACTER))
    return StructureType(blob.name, [*counts, text])
