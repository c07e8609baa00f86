"""The interfaces of idl/, by the names that `load` takes."""

from rpcqm.codec.idl.load import idl_names, load_idl
from rpcqm.codec.interface import names_of

OBJECTS = ("dcom", "oaut", "mqac")
"""The files with interfaces of objects, which have tests of their own."""

INTERFACES = [
    name for file in idl_names() if file not in OBJECTS for name in names_of(load_idl(file))
]
"""The interfaces of files that declare one."""

_NOBODYS = ("oaut.ITypeInfo2", "oaut.ITypeLib2", "oaut.ITypeComp")
"""What no client of ours asks for."""

OF_OBJECTS = [name for file in OBJECTS for name in names_of(load_idl(file)) if name not in _NOBODYS]
