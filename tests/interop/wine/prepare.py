"""Makes copies of idl/ that widl can take, for the client beside this file.

widl marshals an explicit handle_t as an integer under -Oicf, so the copies have an implicit one;
it misreads a 16-bit enumeration ahead of an integer, so they have v1_enum, which is the same on
the wire here; and OBJECTID, which a Windows header has too, gets another name.
"""

import re
import sys
from pathlib import Path

IDL = Path(__file__).parents[3] / "idl"

HEADER = "#include <windows.h>\n#include <rpc.h>\n"


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//.*", "", text), flags=re.S)


def common_types(text: str) -> str:
    """XACTUOW and QUEUE_FORMAT: what RemoteRead has of mqmq.idl."""
    unit_of_work = text[: text.index("} XACTUOW;") + len("} XACTUOW;")]
    unit_of_work = unit_of_work[unit_of_work.rindex("typedef struct") :]
    queue_format = text[text.index("typedef struct _DL_ID") :].replace("OBJECTID", "MQ_OBJECTID")
    return f'import "dtyp.idl";\n{unit_of_work}\n{queue_format}'


def interface(text: str) -> str:
    """The interface with an implicit binding handle."""
    text = re.sub(r"\[in\] handle_t hBind,?\s*", "", text)
    text = re.sub(r"\(\s*\);", "(void);", text)
    attribute = "pointer_default(unique)"
    return text.replace(attribute, f"{attribute}, implicit_handle(handle_t RemoteRead_binding)")


def with_v1_enumerations(text: str) -> str:
    return re.sub(r"typedef enum\b", "typedef [v1_enum] enum", text)


def prepare(directory: Path) -> None:
    """Write dtyp.idl, mqmq.idl, remoteread.idl and the header of the first into a directory."""
    for name, change in (("dtyp", str), ("mqmq", common_types), ("remoteread", interface)):
        text = without_comments((IDL / f"{name}.idl").read_text("utf-8"))
        (directory / f"{name}.idl").write_text(with_v1_enumerations(change(text)))
    (directory / "dtyp.h").write_text(HEADER)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
