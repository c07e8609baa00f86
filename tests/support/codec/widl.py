"""Copies of idl/ that Wine's IDL compiler takes.

widl 7 is a stranger's reading of the same declarations, but it has gaps.  What is changed for
it here changes no octet on the wire; idl/ itself keeps the published text.

    scripts/prepare-widl DIRECTORY
"""

import re
import sys
from collections.abc import Iterable
from importlib import resources
from itertools import chain
from pathlib import Path

from rpcqm.codec.idl.load import idl_names, load_idl
from rpcqm.codec.idl.tree import Enumeration, StructureType

__all__ = ["COMMAND", "INCLUDED", "prepare"]

COMMAND = [
    *("x86_64-w64-mingw32-widl", "--win64", "-Oicf"),
    *("-I", "/usr/include/wine/wine/windows"),
]

INCLUDED = ("mqmq", "mqvalues")
"""The files without interfaces, of which the others need headers."""

_OBJECTS = ("dcom", "oaut", "oautvalues", "mqac", "mqacvalues")

_ANNOTATION = re.compile(r"/\*\s*rpcqm:(?P<body>[^*]*)\*/")
_HANDLE = re.compile(r"\[in\]\s*handle_t\s+\w+\s*(?P<comma>,?)\s*")
_INTERFACE = re.compile(r"\[(?P<attributes>[^\[\]]*\buuid\([^\[\]]*)\]\s*interface")


def prepare(directory: Path) -> list[str]:
    """Write the copies into a directory; gives the names of the files with interfaces."""
    names = [name for name in idl_names() if name != "dtyp" and name not in _OBJECTS]
    renamed = _colliding()
    for name in names:
        text = (resources.files("rpcqm.idl") / f"{name}.idl").read_text("utf-8")
        (directory / f"{name}.idl").write_text(_prepared(text, renamed), "utf-8")
    return [name for name in names if load_idl(name).interfaces]


def _colliding() -> list[str]:
    """The names of mqmq.idl and mqvalues.idl, half of them those of other types and values in
    Windows' headers, and two of the endpoint mapper's that are names there as well."""
    file = load_idl("mqmq")
    tags = re.findall(r"(?:struct|enum|union)\s+(\w+)\s*\{", _text("mqmq"))
    values = re.findall(r"([A-Z]\w*) =|\} ([A-Z]\w*);", _text("mqvalues"))
    structures = [m for m in file.types.values() if isinstance(m, StructureType | Enumeration)]
    aliases = [alias for made in structures for alias in (made.name, *made.aliases)]
    names = {*file.types, *file.constants, *tags, *aliases, *filter(None, chain(*values))}
    return sorted({*names, "RPC_IF_ID", "error_status_t"})


def _text(name: str) -> str:
    return (resources.files("rpcqm.idl") / f"{name}.idl").read_text("utf-8")


def _prepared(text: str, renamed: Iterable[str]) -> str:
    steps = (_inner, _annotations, _base_types, _bindings, _enumerations, _variants, _counted)
    for step in (*steps, _padded, _tags):
        text = step(text)
    return re.sub(rf"\b({'|'.join(renamed)})\b", r"MQ_\1", text)


def _inner(text: str) -> str:
    """A number in the place of a full pointer to text behind another pointer.

    Wine's stubs end in an access violation there. NULL, all that a client sends and all that it
    gets of a queue of the server's own, is the same octets as 0.
    """
    declaration = r"\[in, out, ptr, string\]\s*/\*\s*rpcqm: inner[^*]*\*/\s*WCHAR\*\* (\w+)"
    return re.sub(declaration, r"[in, out] DWORD* \1", text)


def _annotations(text: str) -> str:
    """[string] where an annotation says it; the other annotations are for our loader."""
    text = re.sub(r"\]\s*/\*\s*rpcqm:\s*string\b[^*]*\*/", ", string]", text)
    return _ANNOTATION.sub("", text)


def _base_types(text: str) -> str:
    """Windows' own declarations of what is in [MS-DTYP]."""
    text = text.replace('import "dtyp.idl";', 'import "wtypes.idl";')
    return re.sub(r"\bUUID\b", "GUID", text)


def _bindings(text: str) -> str:
    """No explicit binding: under -Oicf widl marshals a handle_t as four octets."""
    text = _HANDLE.sub("", text)
    text = re.sub(r"\(\s*\)", "(void)", text)
    implicit = "implicit_handle(handle_t rpcqm_binding)"
    return _INTERFACE.sub(rf"[\g<attributes>, {implicit}] interface", text)


def _enumerations(text: str) -> str:
    """32-bit enumerations where a 32-bit field or a pointer follows one in a structure.

    widl misplaces that field.  Both forms are the same octets in little-endian order.
    """
    for enumeration in ("SectionType", "REMOTEREADACK"):
        text = re.sub(
            rf"typedef enum(?=[^{{;]*\{{[^}}]*\}}\s*{enumeration}\s*;)",
            "typedef [v1_enum] enum",
            text,
        )
    return text


def _variants(text: str) -> str:
    """PROPVARIANT without its one arm that holds PROPVARIANTs.

    widl follows the pointers of a recursive type until its stack ends.  The other twenty arms
    are the same octets without it.  The forward declaration is not C.
    """
    text = text.replace("typedef tag_inner_PROPVARIANT PROPVARIANT;", "")
    text = text.replace("} tag_inner_PROPVARIANT;", "} tag_inner_PROPVARIANT, PROPVARIANT;")
    text = re.sub(r"typedef struct tagCAPROPVARIANT \{[^}]*\} CAPROPVARIANT;", "", text)
    return re.sub(r"\[case\(VT_VECTOR\|VT_VARIANT\)\]\s*CAPROPVARIANT capropvar;", "", text)


def _counted(text: str) -> str:
    """Body and title as strings, which count themselves, with their null characters.

    widl's stubs take the counts of arrays behind two pointers from the wrong place. The octets of
    such a string are those of a varying array of its length.
    """
    counts = r"\[size_is\(,\w+\), length_is\(,\w+\)\]"
    field = r"((?:unsigned char|WCHAR)\*\* pp(?:Body|Title);)"
    return re.sub(rf"{counts}\s*{field}", r"[string] \1", text)


def _padded(text: str) -> str:
    """The gap between a pointer and an integer of eight octets behind it, as a field.

    In memory there is none on 64-bit machines, and Wine's stubs then leave none in NDR either,
    where a pointer has four octets and the integer stands at a multiple of eight.
    """
    return re.sub(r"(REMOTEREADDESC\* pRemoteReadDesc;)", r"\1 DWORD gap;", text)


def _tags(text: str) -> str:
    """`struct X y` where X is a typedef: X y."""
    return re.sub(r"\bstruct (CAC\w+|OBJECT_FORMAT)\b(?!\s*\{)", r"\1", text)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    print("\n".join(prepare(target)))
