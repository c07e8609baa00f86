"""Copies of dcom.idl and mqac.idl that Wine's IDL compiler takes.

The types of automation are Windows' own there. What is changed changes no octet on the wire.
"""

import re
from importlib import resources
from pathlib import Path

OBJECT_FILES = ("dcom", "mqac")

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_WINDOWS = ("WORD", "INT", "UINT", "BOOL", "FLOAT", "DOUBLE", "CLSID", "IID", "LCID")
_KEPT = (*_WINDOWS, "error_status_t")


def prepare_objects(directory: Path) -> None:
    """Write the copies into a directory."""
    for name, prepared in (("dcom", _dcom), ("mqac", _mqac)):
        text = (resources.files("rpcqm.idl") / f"{name}.idl").read_text("utf-8")
        (directory / f"{name}.idl").write_text(prepared(_COMMENT.sub("", text)), "utf-8")


def _mqac(text: str) -> str:
    """With Windows' own automation; `odl` says that these are interfaces of objects."""
    text = text.replace('import "oaut.idl";', 'import "oaidl.idl";').replace(", odl", "")
    return re.sub(r"\[(uuid\([^)]*\), [^\]]*\]\s*interface)", r"[object, \1", text)


def _dcom(text: str) -> str:
    """Without bindings as parameters, and with names that Windows' headers have not."""
    text = text.replace('import "dtyp.idl";', 'import "wtypes.idl";')
    text = re.sub(r"\[in\]\s*handle_t\s+\w+\s*,?\s*", "", text)
    text = re.sub(r"\(\s*\)", "(void)", text)
    text = re.sub(r", disable_consistency_check|\[disable_consistency_check\] ", "", text)
    implicit = r"[\1, implicit_handle(handle_t rpcqm_binding)] interface"
    text = re.sub(r"\[(uuid\([^)]*\), pointer_default\(unique\))\]\s*interface", implicit, text)
    names = {*re.findall(r"typedef [^{;]*?\b(\w+);", text), *re.findall(r"\} (\w+);", text)}
    for name in _KEPT:
        text = re.sub(rf"typedef [^;{{]*\b{name};\n", "", text)
    tags = re.findall(r"(?:struct|enum|union) (\w+) \{", text)
    renamed = sorted((names - {*_KEPT}) | {*tags, "IUnknown"})
    return re.sub(rf"\b({'|'.join(renamed)})\b", r"Q_\1", text)
