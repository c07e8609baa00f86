"""Descriptions of automation types: members, their numbers and their parameters ([MS-OAUT] 3.7.1).

They come from the IDL, so that what IDispatch tells is what the interfaces are.
"""

from dataclasses import dataclass
from uuid import UUID

from rpcqm.codec.automation.values import Variant


@dataclass(frozen=True, slots=True)
class TypeDescription:
    """A type of a parameter ([MS-OAUT] 2.2.37).

    `vt` is a VARENUM; VT_PTR and VT_SAFEARRAY have an `element`, VT_USERDEFINED the `name` of an
    interface or enumeration.
    """

    vt: int
    element: "TypeDescription | None" = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a member; `flags` are PARAMFLAGS, `default` is its [defaultvalue]."""

    name: str
    type: TypeDescription
    flags: int
    default: Variant | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A method, or one accessor of a property.

    `name` is what programs write (`Label`), `operation` what the interface calls it (`get_Label`).
    """

    name: str
    operation: str
    dispid: int
    invoke_kind: int
    opnum: int
    parameters: tuple[Parameter, ...]
    flags: int = 0


@dataclass(frozen=True, slots=True)
class InterfaceDescription:
    """An interface: `members` are all that IDispatch reaches, inherited ones first."""

    name: str
    uuid: UUID
    members: tuple[Member, ...]
    flags: int = 0
    base: str = "IDispatch"
