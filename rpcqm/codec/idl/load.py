"""Turns IDL files into typed trees; `load_idl` is the function that others call."""

import functools
import uuid
from collections.abc import Callable
from importlib import import_module
from pathlib import Path, PurePath

from rpcqm.codec.idl.cache import kept
from rpcqm.codec.idl.marks import BindingHandle, InterfaceName, Marks, Void
from rpcqm.codec.idl.nodes import (
    AttributeNode,
    BaseSpec,
    CoclassNode,
    ConstantNode,
    IdlError,
    Import,
    InterfaceNode,
    Name,
    NamedSpec,
    OperationNode,
    ParameterNode,
    Statement,
    Text,
    TypedefNode,
    TypeSpec,
)
from rpcqm.codec.idl.scope import Declaration, Scope
from rpcqm.codec.idl.tree import (
    Coclass,
    Dispinterface,
    IdlFile,
    InterfaceDeclaration,
    OperationDeclaration,
    Parameter,
    PointerKind,
    Type,
    Union,
)

__all__ = ["IdlError", "idl_names", "load_idl", "read_idl"]

_DIRECTORY = Path(next(iter(import_module("rpcqm.idl").__path__)))
_UNUSED = "NotUsedOnWire"
_PROPERTIES = {"propget": "get", "propput": "put", "propputref": "putref"}
_PARSER = ("syntax.py", "nodes.py")


def idl_names() -> list[str]:
    """The names of the files in idl/, without their suffix."""
    return sorted(path.stem for path in _DIRECTORY.glob("*.idl"))


@functools.cache
def load_idl(name: str) -> IdlFile:
    """Read idl/<name>.idl; a process makes the tree once.

    Raises IdlError if the file does not exist or is not understood.
    """
    path = _DIRECTORY / f"{name}.idl"
    if not path.is_file():
        raise IdlError(f"{name}.idl", 0, "there is no such file")
    text = path.read_bytes()
    statements = kept(
        _DIRECTORY,
        name,
        [text, *_parser_sources()],
        lambda: _parse(text.decode(), f"{name}.idl"),
    )
    return _tree(statements, f"{name}.idl", load_idl)


def read_idl(text: str, file: str, load: Callable[[str], IdlFile] = load_idl) -> IdlFile:
    """Make the tree of an IDL text; `file` names it in errors, `load` finds its imports."""
    return _tree(_parse(text, file), file, load)


def _parse(text: str, file: str) -> tuple[Statement, ...]:
    # here, because a parser is needed only without a cached copy
    from rpcqm.codec.idl.syntax import parse_idl

    return parse_idl(text, file)


@functools.cache
def _parser_sources() -> list[bytes]:
    return [Path(__file__).with_name(name).read_bytes() for name in _PARSER]


def _tree(statements: tuple[Statement, ...], file: str, load: Callable[[str], IdlFile]) -> IdlFile:
    reader = _InterfaceReader(file, load)
    reader.read(statements)
    return reader.file


class _InterfaceReader:
    """Goes through the statements of one file."""

    def __init__(self, file: str, load: Callable[[str], IdlFile]) -> None:
        self.file = IdlFile(file)
        self.scope = Scope(self.file)
        self.load = load

    def read(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            self._declare(statement)
        self.scope.finish()
        for statement in statements:
            if isinstance(statement, CoclassNode):
                self._coclass(statement)
            elif isinstance(statement, InterfaceNode) and statement.body is not None:
                make = self._dispinterface if statement.dispatch else self._interface
                make(statement, statement.body)

    def _declare(self, statement: Statement) -> None:
        match statement:
            case Import(files, _line):
                self.file.imports += [self.load(PurePath(name).stem) for name in files]
            case ConstantNode(name, value, line):
                self.file.constants[name] = self.scope.number(value, line)
            case TypedefNode():
                self.scope.declare(statement)
            case InterfaceNode():
                self.file.interface_names.add(statement.name)
                self._declare_body(statement)

    def _declare_body(self, node: InterfaceNode) -> None:
        marks = Marks(self.file.name, node.attributes, Marks.INTERFACES)
        before = self.scope.pointer_default, self.scope.ms_union
        self.scope.pointer_default = self._pointer_default(marks)
        self.scope.ms_union = "ms_union" in marks
        for statement in node.body or ():
            self._declare(statement)
        self.scope.pointer_default, self.scope.ms_union = before

    def _pointer_default(self, marks: Marks) -> PointerKind:
        attribute = marks.get("pointer_default")
        if attribute is None:
            return PointerKind.UNIQUE
        kind = next(iter(_words(attribute)), "")
        try:
            return PointerKind(kind)
        except ValueError:
            reason = "pointer_default is ref, unique or ptr"
            raise self.scope.error(attribute.line, reason) from None

    def _interface(self, node: InterfaceNode, body: tuple[Statement, ...]) -> None:
        marks = Marks(self.file.name, node.attributes, Marks.INTERFACES)
        self.scope.pointer_default = self._pointer_default(marks)
        base = self._base(node)
        is_object = "object" in marks or (base is not None and base.is_object)
        wired, callbacks = self._operations(node, body, base, is_object)
        self.scope.finish()
        self.file.interfaces[node.name] = InterfaceDeclaration(
            name=node.name,
            uuid=self._uuid(marks, node),
            version=self._version(marks, node),
            operations=(base.operations if base else ()) + tuple(wired),
            callbacks=tuple(callbacks),
            base=base,
            syntaxes=self._syntaxes(marks, is_object),
            strict_context_handle="strict_context_handle" in marks,
            type_strict_context_handle="type_strict_context_handle" in marks,
            is_object=is_object,
            attributes=frozenset(marks.by_name),
        )

    def _dispinterface(self, node: InterfaceNode, body: tuple[Statement, ...]) -> None:
        marks = Marks(self.file.name, node.attributes, Marks.INTERFACES)
        operations: list[OperationDeclaration] = []
        for each in body:
            assert isinstance(each, OperationNode)
            known = Marks(self.file.name, each.attributes, Marks.OPERATIONS)
            operations.append(self._operation(each, known, len(operations), node.name))
        self.file.dispinterfaces[node.name] = Dispinterface(
            node.name, self._uuid(marks, node), tuple(operations)
        )

    def _coclass(self, node: CoclassNode) -> None:
        known = (Marks(self.file.name, m.attributes, Marks.COCLASS_MEMBERS) for m in node.members)
        members = list(zip(known, (m.name for m in node.members), strict=True))
        had = [name for marks, name in members if "source" not in marks]
        default = [n for marks, n in members if "default" in marks and "source" not in marks]
        marks = Marks(self.file.name, node.attributes, Marks.COCLASSES)
        self.file.coclasses[node.name] = Coclass(
            node.name,
            self._uuid(marks, node),
            tuple(had),
            (default or had)[0],
            tuple(name for marks, name in members if "source" in marks),
        )

    def _base(self, node: InterfaceNode) -> InterfaceDeclaration | None:
        if node.base is None:
            return None
        for file in self.file.files():
            if node.base in file.interfaces:
                return file.interfaces[node.base]
        raise self.scope.error(node.line, f"there is no interface {node.base}")

    def _uuid(self, marks: Marks, node: InterfaceNode | CoclassNode) -> uuid.UUID:
        found = marks.uuid()
        if found is None:
            raise self.scope.error(node.line, f"interface {node.name} has no uuid")
        return found

    def _version(self, marks: Marks, node: InterfaceNode) -> tuple[int, int]:
        attribute = marks.get("version")
        if attribute is None:
            return (0, 0)
        match attribute.arguments:
            case (Text(value),):
                major, _, minor = value.partition(".")
                return int(major), int(minor)
        return int(getattr(attribute.arguments[0], "value", 0)), 0

    def _syntaxes(self, marks: Marks, is_object: bool) -> frozenset[str]:
        attribute = marks.get("syntaxes")
        if attribute is None:
            return frozenset({"NDR", "NDR64"} if is_object else {"NDR"})
        return frozenset(_words(attribute))

    def _operations(
        self,
        interface: InterfaceNode,
        body: tuple[Statement, ...],
        base: InterfaceDeclaration | None,
        is_object: bool,
    ) -> tuple[list[OperationDeclaration | None], list[OperationDeclaration]]:
        """The operations by opnum, and the callbacks, which have opnums of their own."""
        opnum = len(base.operations) if base else 0
        owner = interface.name if is_object else ""
        wired: list[OperationDeclaration | None] = []
        callbacks: list[OperationDeclaration] = []
        for node in body:
            if not isinstance(node, OperationNode):
                continue
            marks = Marks(self.file.name, node.attributes, Marks.OPERATIONS)
            if "callback" in marks:
                callbacks.append(self._operation(node, marks, len(callbacks), owner))
            else:
                number = opnum + len(wired)
                wired.append(self._wired(node, marks, number, owner))
        return wired, callbacks

    def _wired(
        self, node: OperationNode, marks: Marks, opnum: int, owner: str
    ) -> OperationDeclaration | None:
        if node.name.endswith(_UNUSED):
            if node.name != f"Opnum{opnum}{_UNUSED}":
                raise self.scope.error(node.line, f"{node.name} stands at opnum {opnum}")
            return None
        return None if "local" in marks else self._operation(node, marks, opnum, owner)

    def _operation(
        self, node: OperationNode, marks: Marks, opnum: int, owner: str
    ) -> OperationDeclaration:
        parameters = [self._parameter(p, node.parameters) for p in node.parameters]
        result = self.scope.resolve(node.spec, "", node.line)
        if isinstance(result, BindingHandle | InterfaceName) or node.pointers:
            raise self.scope.error(node.line, "a method returns a number or nothing")
        return OperationDeclaration(
            self._called(node.name, marks),
            opnum,
            (*self._implicit(owner), *(p for p in parameters if p is not None)),
            None if isinstance(result, Void) else result,
            frozenset(marks.by_name),
            node.line,
            owner,
            self._member(node, marks),
        )

    def _called(self, name: str, marks: Marks) -> str:
        for attribute, prefix in _PROPERTIES.items():
            if attribute in marks:
                return f"{prefix}_{name}"
        return name

    def _implicit(self, owner: str) -> tuple[Parameter, ...]:
        """The parameters of every object's call before its own, [MS-DCOM] 2.2.13.

        A dispinterface's methods have them as well, though they are never on the wire by
        themselves.
        """
        if not owner:
            return ()
        this = self.scope.lookup("ORPCTHIS", 0)
        that = self.scope.lookup("ORPCTHAT", 0)
        return (
            Parameter("orpcthis", this, True, False),
            Parameter("orpcthat", that, False, True),
        )

    def _member(self, node: OperationNode, marks: Marks) -> int | None:
        number = marks.expression("id")
        return None if number is None else self.scope.number(number, node.line)

    def _parameter(
        self, node: ParameterNode, siblings: tuple[ParameterNode, ...]
    ) -> Parameter | None:
        if node.spec == BaseSpec("handle_t"):
            return None
        marks = Marks(self.file.name, node.attributes, Marks.PARAMETERS)
        if not ("in" in marks or "out" in marks):
            raise self.scope.error(node.line, f"{node.declarator.name} is neither in nor out")
        made = self._parameter_type(node, marks)
        if isinstance(made, Union) and not made.encapsulated:
            self.scope.set_tag(made, marks, node.line, lambda tag: self._sibling(tag, siblings))
        switch = marks.expression("switch_is")
        name = node.declarator.name
        return Parameter(
            name,
            made,
            "in" in marks,
            "out" in marks,
            switch,
            node.line,
            frozenset(marks.by_name),
            _written(node.spec) + "*" * node.declarator.pointers,
        )

    def _parameter_type(self, node: ParameterNode, marks: Marks) -> Type:
        declaration = Declaration(
            marks, node.spec, node.declarator, node.line, top_level=True, only_out="in" not in marks
        )
        return self.scope.type_of(declaration, node.declarator.name)

    def _sibling(self, name: str, siblings: tuple[ParameterNode, ...]) -> Type:
        for node in siblings:
            if node.declarator.name == name:
                marks = Marks(self.file.name, node.attributes, Marks.PARAMETERS)
                return self._parameter_type(node, marks)
        raise self.scope.error(siblings[0].line, f"there is no parameter {name} to switch on")


def _written(spec: TypeSpec) -> str:
    return spec.name if isinstance(spec, NamedSpec | BaseSpec) else ""


def _words(attribute: AttributeNode) -> list[str]:
    return [a.text for a in attribute.arguments if isinstance(a, Name)]
