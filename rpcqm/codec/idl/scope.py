"""Type specifiers, declarators and their attributes → types of the tree."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import TypeVar

from rpcqm.codec.idl.expression import evaluate, names_in
from rpcqm.codec.idl.marks import BindingHandle, InterfaceName, Marks, Void, base_type
from rpcqm.codec.idl.nodes import (
    Arm,
    AttributeNode,
    BaseSpec,
    Binary,
    Declarator,
    EnumSpec,
    Expression,
    IdlError,
    Member,
    Name,
    NamedSpec,
    Number,
    StructSpec,
    TagSpec,
    TypedefNode,
    TypeSpec,
    UnionSpec,
)
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Field,
    Guid,
    IdlFile,
    Integer,
    InterfacePointer,
    Pointer,
    PointerKind,
    String,
    StructureType,
    Type,
    Union,
    UnionArm,
    WireMarshal,
)

Resolved = Type | Void | BindingHandle | InterfaceName
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration: a type specifier with one declarator and its attributes.

    `top_level` is true for parameters, whose outermost pointer is a reference pointer unless they
    say otherwise, and `only_out` for those among them that are [out] alone.
    """

    marks: Marks
    spec: TypeSpec
    declarator: Declarator
    line: int
    top_level: bool = False
    only_out: bool = False


@dataclass(slots=True)
class _Layer:
    """One `*`, `[…]` or pointer typedef between a name and its type."""

    pointer: PointerKind | None = None
    bound: Expression | None = None
    size: Expression | None = None
    length: Expression | None = None

    @property
    def counted(self) -> bool:
        return self.size is not None or self.length is not None


class Scope:
    """The names of one file; types are resolved on demand."""

    def __init__(self, file: IdlFile) -> None:
        self.file = file
        self.pointer_default = PointerKind.UNIQUE
        self.ms_union = False
        self._tags: dict[tuple[str, str], tuple[TypeSpec, str]] = {}
        self._bodies: dict[int, StructureType | Union | Enumeration] = {}
        self._pending: dict[str, Callable[[], Type]] = {}
        self._work: list[Callable[[], object]] = []

    # names

    def declare(self, node: TypedefNode) -> None:
        """Note a typedef, or the declaration of a tag, for later."""
        plain = next((d.name for d in node.declarators if not (d.pointers or d.bounds)), None)
        marks = Marks(self.file.name, node.attributes, Marks.TYPES)
        named = marks.expression("name")
        if isinstance(named, Name):
            plain = named.text
        self._note_tag(node.spec, plain)
        if "objref" in marks:
            self.file.interface_names.update(d.name for d in node.declarators)
            return
        for declarator in node.declarators:
            declaration = Declaration(marks, node.spec, declarator, node.line)
            if self._find(self.file, declarator.name, set()) or declarator.name in self._pending:
                raise self.error(node.line, f"{declarator.name} is declared twice")
            self._pending[declarator.name] = self._as_now(
                partial(self._named_type, declaration, plain)
            )
        if not node.declarators:
            self._later(lambda: self.resolve(node.spec, "", node.line))

    def _note_tag(self, spec: TypeSpec, name: str | None) -> None:
        if isinstance(spec, EnumSpec):
            self._body(spec, name or spec.tag or "")
        if isinstance(spec, StructSpec | UnionSpec | EnumSpec) and spec.tag:
            kind = type(spec).__name__.removesuffix("Spec").lower()
            self._tags[kind, spec.tag] = (spec, name or spec.tag)

    def _as_now(self, function: Callable[[], _T]) -> Callable[[], _T]:
        """Wrap a function so that it runs later under the defaults of this place in the file."""
        then = self.pointer_default, self.ms_union

        def call() -> _T:
            now = self.pointer_default, self.ms_union
            self.pointer_default, self.ms_union = then
            try:
                return function()
            finally:
                self.pointer_default, self.ms_union = now

        return call

    def _later(self, function: Callable[[], object]) -> None:
        self._work.append(self._as_now(function))

    def _named_type(self, declaration: Declaration, plain: str | None) -> Type:
        name, marks = declaration.declarator.name, declaration.marks
        if "context_handle" in marks:
            return self._context_handle(name, declaration)
        if "guid" in marks:
            return Guid()
        if "wire_marshal" in marks:
            return WireMarshal(name)
        made = self.type_of(declaration, plain or name)
        if isinstance(made, StructureType | Union | Enumeration) and made.name != name:
            made.aliases.append(name)
        if isinstance(made, Enumeration):
            made.v1 = made.v1 or "v1_enum" in marks
        if isinstance(made, Integer) and "unsigned" in marks:
            return made.changed(signed=False)
        if isinstance(made, Integer) and "truth" in marks:
            return made.changed(truth=True)
        return made

    def _context_handle(self, name: str, declaration: Declaration) -> ContextHandleType:
        base = self.resolve(declaration.spec, name)
        if not isinstance(base, Void | ContextHandleType):
            raise self.error(declaration.line, "a context handle is a void*")
        serialize = True if "context_handle_serialize" in declaration.marks else None
        if "context_handle_noserialize" in declaration.marks:
            serialize = False
        return ContextHandleType(name, serialize)

    def lookup(self, name: str, line: int) -> Type:
        """The type called `name`, here or in an imported file."""
        if name in self._pending:
            resolve = self._pending.pop(name)
            self.file.types[name] = resolve()
        found = self._find(self.file, name, set())
        if found is None:
            raise self.error(line, f"there is no type {name}")
        return found

    def _find(self, file: IdlFile, name: str, seen: set[int]) -> Type | None:
        if name in file.types:
            return file.types[name]
        seen.add(id(file))
        below = (self._find(f, name, seen) for f in file.imports if id(f) not in seen)
        return next((found for found in below if found is not None), None)

    def constants(self) -> Mapping[str, int]:
        """Every constant and enumerator that is visible here."""
        found: dict[str, int] = {}
        for file in self.file.files():
            found = {**file.constants, **found}
        return found

    def number(self, expression: Expression, line: int) -> int:
        """The value of a constant expression."""
        try:
            return evaluate(expression, self.constants())
        except KeyError as problem:
            raise self.error(line, f"{problem.args[0]} is no constant") from None
        except (ZeroDivisionError, ValueError) as problem:
            raise self.error(line, str(problem)) from None

    def finish(self) -> None:
        """Resolve all declarations."""
        while self._pending or self._work:
            for name in list(self._pending):
                if name in self._pending:
                    self.lookup(name, 0)
            while self._work:
                self._work.pop(0)()

    def error(self, line: int, reason: str) -> IdlError:
        return IdlError(self.file.name, line, reason)

    # types

    def resolve(self, spec: TypeSpec, name: str, line: int = 0) -> Resolved:
        """The type that a specifier names; `name` is for one without a tag."""
        match spec:
            case BaseSpec(words):
                found = base_type(words)
                if found is None:
                    raise self.error(line, f"there is no type {words}")
                return found
            case NamedSpec(named):
                if any(named in file.interface_names for file in self.file.files()):
                    return InterfaceName(named)
                return self.lookup(named, line)
            case TagSpec(kind, tag):
                return self._tagged(kind, tag, line)
            case _:
                return self._body(spec, name or spec.tag or "")

    def _tagged(self, kind: str, tag: str, line: int) -> Type:
        if (kind, tag) in self._tags:
            return self._body(*self._tags[kind, tag])
        return self.lookup(tag, line)

    def _body(self, spec: TypeSpec, name: str) -> StructureType | Union | Enumeration:
        if id(spec) not in self._bodies:
            self._bodies[id(spec)] = self._make_body(spec, name)
        return self._bodies[id(spec)]

    def _make_body(self, spec: TypeSpec, name: str) -> StructureType | Union | Enumeration:
        match spec:
            case EnumSpec():
                return self._enumeration(spec, name)
            case StructSpec():
                structure = StructureType(name)
                self._later(lambda: self._fill_structure(structure, spec))
                return structure
            case UnionSpec():
                union = Union(name, ms_union=self.ms_union)
                union.encapsulated = spec.switch is not None
                self._later(lambda: self._fill_union(union, spec))
                return union
        raise self.error(0, f"{name} has no body")

    def _enumeration(self, spec: EnumSpec, name: str) -> Enumeration:
        made, following = Enumeration(name), 0
        for enumerator in spec.enumerators:
            if enumerator.value is not None:
                following = self.number(enumerator.value, spec.line)
            made.values[enumerator.name] = following
            self.file.constants[enumerator.name] = following
            following += 1
        return made

    def _check_value(self, made: Resolved, line: int) -> Type:
        if isinstance(made, Void | BindingHandle):
            raise self.error(line, "void and handle_t have no values")
        if isinstance(made, InterfaceName):
            raise self.error(line, f"{made.name} is an interface: there are only pointers to it")
        return made

    def _fill_structure(self, structure: StructureType, spec: StructSpec) -> None:
        siblings = {m.declarator.name: m for m in spec.members if m.declarator}
        for member in spec.members:
            structure.fields.append(self._field(structure, member, siblings))

    def _field(
        self, owner: StructureType | Union, member: Member, siblings: Mapping[str, Member]
    ) -> Field:
        name = member.declarator.name if member.declarator else "u"
        marks = Marks(self.file.name, member.attributes, Marks.MEMBERS)
        nested = f"{owner.name.removesuffix('_u')}_{name.lstrip('_')}"
        made = self._member_type(marks, member, nested)
        inner = self._nested(member.spec, nested)
        if inner is not None:
            owner.nested[name] = inner
        if isinstance(made, Union) and not made.encapsulated:
            self.set_tag(made, marks, member.line, lambda tag: self._sibling(tag, siblings, member))
        return Field(name, made, marks.expression("switch_is"), member.line)

    def _nested(self, spec: TypeSpec, name: str) -> StructureType | Union | None:
        if isinstance(spec, StructSpec | UnionSpec) and not spec.tag:
            made = self._body(spec, name)
            return made if isinstance(made, StructureType | Union) else None
        return None

    def _member_type(self, marks: Marks, member: Member, nested: str) -> Type:
        declarator = member.declarator or Declarator("", 0)
        declaration = Declaration(marks, member.spec, declarator, member.line)
        return self.type_of(declaration, nested)

    def _sibling(self, name: str, siblings: Mapping[str, Member], member: Member) -> Type:
        other = siblings.get(name)
        if other is None:
            raise self.error(member.line, f"there is no member {name} to switch on")
        marks = Marks(self.file.name, other.attributes, Marks.MEMBERS)
        return self._member_type(marks, other, name)

    def set_tag(
        self, union: Union, marks: Marks, line: int, type_named: Callable[[str], Type]
    ) -> None:
        """Give a union the type of its tag: [switch_type], or that of the field in [switch_is]."""
        union.ms_union = union.ms_union or "ms_union" in marks
        switch_type = marks.get("switch_type")
        switch = marks.expression("switch_is")
        if switch_type is not None:
            tag = self._switch_type(switch_type)
        elif switch is not None and union.tag is None:
            tag = type_named(next(names_in(switch), ""))
        elif union.tag is None:
            raise self.error(line, "a union needs [switch_is] or [switch_type]")
        else:
            return
        if not isinstance(tag, Integer | Enumeration):
            raise self.error(line, "a union's tag is an integer or an enumeration")
        union.tag = tag.changed(limits=None) if isinstance(tag, Integer) else tag

    def _switch_type(self, attribute: AttributeNode) -> Resolved:
        match attribute.arguments:
            case (BaseSpec() as spec,):
                return self.resolve(spec, "", attribute.line)
            case (Name(text),):
                return self.lookup(text, attribute.line)
        raise self.error(attribute.line, "[switch_type] takes a type")

    def _fill_union(self, union: Union, spec: UnionSpec) -> None:
        if spec.switch is not None:
            tag = self.resolve(spec.switch[0], "", spec.line)
            if not isinstance(tag, Integer | Enumeration):
                raise self.error(spec.line, "a union's tag is an integer or an enumeration")
            union.tag = tag
        for arm in spec.arms:
            self._add_arm(union, arm)

    def _add_arm(self, union: Union, arm: Arm) -> None:
        field = self._field(union, arm.member, {}) if arm.member else None
        name, made = (field.name, field.type) if field else ("", None)
        if arm.labels is None:
            union.default = UnionArm((), name, made)
            return
        labels = tuple(self.number(label, arm.line) for label in arm.labels)
        union.arms.append(UnionArm(labels, name, made))

    # declarators

    def type_of(self, declaration: Declaration, name: str) -> Type:
        """The type of a declarator; `name` is for one without a tag."""
        base = self.resolve(declaration.spec, name, declaration.line)
        if "context_handle" in declaration.marks and isinstance(base, Void):
            return ContextHandleType(name)
        layers = self._layers(declaration)
        if isinstance(base, InterfaceName) and layers:
            layers.pop()
            base = InterfacePointer(base.name, declaration.marks.expression("iid_is"))
        made = self._check_value(base, declaration.line)
        made = self._unwrap(made, layers, declaration)
        self._add_counts(layers, declaration)
        self._add_kinds(layers, declaration)
        return self._limited(self._build(made, layers, declaration), declaration)

    def _layers(self, declaration: Declaration) -> list[_Layer]:
        """From the outside in: bounds first, then stars from the name outwards."""
        declarator = declaration.declarator
        bounds = [_Layer(bound=bound) for bound in declarator.bounds]
        stars = [_Layer(pointer=self.pointer_default) for _ in range(declarator.pointers)]
        return bounds + stars

    def _unwrap(self, made: Type, layers: list[_Layer], declaration: Declaration) -> Type:
        """Take pointers that come from a typedef for layers where attributes reach them."""
        reached = declaration.top_level or bool(_REACHING & declaration.marks.by_name.keys())
        while isinstance(made, Pointer) and reached:
            layers.append(_Layer(pointer=made.kind))
            made = made.to
        return made

    def _add_counts(self, layers: list[_Layer], declaration: Declaration) -> None:
        marks = declaration.marks
        sizes = marks.expressions("size_is") or [
            bound and Binary("+", bound, Number(1)) for bound in marks.expressions("max_is")
        ]
        lengths = marks.expressions("length_is")
        if max(len(sizes), len(lengths)) > len(layers):
            raise self.error(declaration.line, "more counts than dimensions")
        filled = zip(layers, chain(sizes, repeat(None)), chain(lengths, repeat(None)), strict=False)
        for layer, size, length in filled:
            layer.size, layer.length = size, length

    def _add_kinds(self, layers: list[_Layer], declaration: Declaration) -> None:
        """Apply the rules of [C706] 4.2.20 and [MS-RPCE] 2.2.4.10.

        An explicit attribute is the outermost pointer's.  Where a parameter is [out] alone
        that pointer can only be a reference pointer, and the attribute is the next one's;
        elsewhere an annotation, `inner`, can say so.
        """
        explicit = declaration.marks.pointer_kind()
        if not declaration.top_level:
            if explicit and layers:
                layers[0].pointer = explicit if layers[0].pointer else None
            return
        inner = [layer for layer in layers[1:] if layer.pointer]
        if explicit and inner and (declaration.only_out or "inner" in declaration.marks):
            inner[0].pointer, explicit = explicit, None
        if layers and (layers[0].pointer or explicit):
            layers[0].pointer = explicit or PointerKind.REF

    def _build(self, made: Type, layers: list[_Layer], declaration: Declaration) -> Type:
        string = "string" in declaration.marks
        for layer in reversed(layers):
            made = self._wrap(made, layer, string, declaration)
            string = False
        if layers and declaration.top_level and isinstance(made, Pointer):
            return made.to if made.kind is PointerKind.REF else made
        return made

    def _wrap(self, made: Type, layer: _Layer, string: bool, declaration: Declaration) -> Type:
        bounded = layer.pointer is None or layer.bound is not None
        if string:
            made = self._string(made, layer, declaration)
        elif bounded or layer.counted:
            made = self._array(made, layer, declaration)
        return made if layer.pointer is None else Pointer(layer.pointer, made)

    def _count(self, layer: _Layer, declaration: Declaration) -> int | None:
        return None if layer.bound is None else self.number(layer.bound, declaration.line)

    def _string(self, made: Type, layer: _Layer, declaration: Declaration) -> String:
        if not isinstance(made, Integer) or not (made.character or made.octet):
            raise self.error(declaration.line, "[string] is for characters")
        return String(made, self._count(layer, declaration), layer.size)

    def _array(self, made: Type, layer: _Layer, declaration: Declaration) -> Array:
        count = self._count(layer, declaration)
        if count is None and layer.size is None:
            raise self.error(declaration.line, "an open array needs [size_is]")
        if isinstance(made, Array | String):
            raise self.error(declaration.line, "arrays of arrays are not supported")
        return Array(made, count, layer.size, layer.length)

    def _limited(self, made: Type, declaration: Declaration) -> Type:
        """Apply [range] to the innermost integer, or to the count of an array."""
        attribute = declaration.marks.get("range")
        if attribute is None:
            return made
        low, high = (
            self.number(bound, declaration.line)
            for bound in declaration.marks.expressions("range")[:2]
            if bound is not None
        )
        return _within(made, (low, high), self.error(declaration.line, "[range] of no number"))


_REACHING = {"length_is", "max_is", "ptr", "ref", "size_is", "string", "unique"}


def _within(made: Type, limits: tuple[int, int], otherwise: IdlError) -> Type:
    match made:
        case Integer() | Array() | String():
            return made.changed(limits=limits)
        case Pointer(kind, to):
            return Pointer(kind, _within(to, limits, otherwise))
    raise otherwise
