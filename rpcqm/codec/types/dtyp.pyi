"""Types of idl/dtyp.idl: written by scripts/generate."""

from rpcqm.codec.interface import Value

class LARGE_INTEGER(Value):
    QuadPart: int
    def __init__(self, *, QuadPart: int = ...) -> None: ...

class ULARGE_INTEGER(Value):
    QuadPart: int
    def __init__(self, *, QuadPart: int = ...) -> None: ...
