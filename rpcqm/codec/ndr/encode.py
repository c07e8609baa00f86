"""Encoders: a type of the tree → Python source that writes it.

A value that cannot be written is a mistake of ours: ValueError for a value that does not fit its
type, its range or its correlated values, TypeError for a value of another kind.
"""

from dataclasses import dataclass
from functools import partial

from rpcqm.codec.idl.expression import names_in
from rpcqm.codec.idl.nodes import Expression, Name
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Float,
    Guid,
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
from rpcqm.codec.ndr.layout import (
    Position,
    alignment,
    marshaller,
    open_end,
    scalar,
)
from rpcqm.codec.ndr.source import Deferred, Emitter, Frame, Functions, Source

_PARAMETERS = "w, o, v, ids, full"


class Writers(Functions):
    """The functions of a module that write structures and arrays of them."""

    def structure(self, made: StructureType) -> str:
        """The name of `f(w, o, v, ids, full)`, which gives the offset behind the value."""
        return self.function("write", made, _PARAMETERS, self._structure_body)

    def array(self, made: StructureType) -> str:
        """The name of `f(w, o, v, ids, full)` for the elements of an array."""
        return self.function("items", made, _PARAMETERS, self._array_body)

    def _structure_body(self, source: Source, made: StructureType) -> None:
        encoder = Encoder(self, source, Position(self.entry(made)))
        encoder.structure(made, "v")
        encoder.run_deferred()
        encoder.settle()
        encoder.line("return o")

    def _array_body(self, source: Source, made: StructureType) -> None:
        encoder = Encoder(self, source, Position(1))
        encoder.loop(made, "v")
        encoder.run_deferred()
        encoder.settle()
        encoder.line("return o")


class Encoder(Emitter):
    """Writes the body of one function that writes."""

    writes_gaps = True

    def __init__(self, writers: Writers, source: Source, position: Position) -> None:
        super().__init__(writers.module, source, position)
        self.writers = writers

    # lines

    def emit_run(self, code: str, what: list[str]) -> None:
        self.line(f"w({self.module.pack(code)}({', '.join(what)}))")

    def align_at_run_time(self, align: int) -> None:
        self.settle()
        gap = self.fresh("g")
        with self.source.block(f"if o & {align - 1}:"):
            self.line(f"{gap} = -o & {align - 1}")
            self.line(f"w(GAPS[{gap}])")
            self.line(f"o += {gap}")

    def refuse(self, condition: str, reason: str) -> None:
        """Emit a check: raise ValueError where the condition holds."""
        with self.source.block(f"if {condition}:"):
            self.line(f'raise ValueError("{reason}")')

    def check(self, frame: Frame, expected: Expression, actual: str, of: str, what: str) -> None:
        """Emit the check of a correlation."""
        if frame.knows(expected):
            reason = f"{what} of {of.rpartition('.')[2]} is not what it depends on"
            self.refuse(f"{actual} != {frame.python(expected)}", reason)

    # types

    def whole(self, made: Type, value: str, frame: Frame, switch: Expression | None = None) -> None:
        """Write an outermost value: a parameter, or the target of a pointer."""
        outer, self.deferred = self.deferred, []
        if isinstance(made, StructureType) and self.is_called(made):
            self.align(self.writers.entry(made))
            self.call(self.writers.structure(made), value)
        elif isinstance(made, Array | String) and made.conformant:
            found = self.prepare(made, value, frame)
            word = self.wire.word
            self.take(self.wire.word_code, word, word, found.maximum)
            self.counted(made, found, value)
        else:
            self.inline(made, value, frame, switch)
        self.run_deferred()
        self.deferred = outer

    def call(self, function: str, value: str) -> None:
        self.settle()
        self.line(f"o = {function}(w, o, {value}, ids, full)")
        self.position.set(1)

    def inline(
        self, made: Type, value: str, frame: Frame, switch: Expression | None = None
    ) -> None:
        """Write the part of a value that is in place."""
        match made:
            case StructureType():
                self.structure(made, value)
            case Union():
                self.union(made, value, frame, switch)
            case Pointer():
                self.pointer(made, value, frame)
            case InterfacePointer() | WireMarshal():
                self.marshalled(made, value)
            case Array():
                self.array(made, value, frame)
            case String():
                self.counted(made, self.prepare(made, value, frame), value)
            case _:
                self.number(made, value)

    def number(self, made: Type, value: str) -> None:
        """Write a type of fixed size."""
        code, size = scalar(made, self.wire) or ("", 0)
        if isinstance(made, Enumeration) and code == "H":
            code = "h"
        what = value
        match made:
            case Integer(truth=True):
                what = f"-1 if {value} else 0"
            case Integer(limits=(low, high)):
                name = value.rpartition(".")[2]
                self.refuse(f"not {low} <= {value} <= {high}", f"{name} is not in {low}..{high}")
            case Guid():
                what = f"{value}.bytes" if self.wire.big_endian else f"{value}.bytes_le"
            case ContextHandleType():
                self.refuse(f"len({value}) != 20", "a context handle has 20 octets")
                what = f"handle_to_big_endian({value})" if self.wire.big_endian else value
        self.take(code, size, alignment(made, self.wire), what)

    # structures and unions

    def structure(self, made: StructureType, value: str) -> None:
        """Write the part of a structure that is in place."""
        final = open_end(made)
        name = value
        if not value.isidentifier():
            name = self.fresh("v")
            self.line(f"{name} = {value}")
        frame = Frame(name, frozenset(field.name for field in made.fields))
        found = None
        if final is not None:
            found = self.prepare(final, frame.variable(made.fields[-1].name), frame)
            self.take(self.wire.word_code, self.wire.word, self.wire.word, found.maximum)
        self.align(alignment(made, self.wire))
        for field in made.fields:
            field_value = frame.variable(field.name)
            if final is not None and found is not None and field is made.fields[-1]:
                self.counted(final, found, field_value)
            else:
                self.inline(field.type, field_value, frame, field.switch)
        if self.wire.ndr64 and final is None:
            self.align(alignment(made, self.wire))

    def union(self, made: Union, value: str, frame: Frame, switch: Expression | None) -> None:
        """Write a union: its tag, which must equal its switch, and the selected arm."""
        if made.tag is None:
            raise TypeError(f"{made.name} has no tag")
        if self.wire.ndr64:
            self.align(alignment(made, self.wire))
        name, tag = self.fresh("v"), self.fresh("t")
        self.line(f"{name} = {value}")
        self.line(f"{tag} = {name}.tag")
        if switch is not None:
            self.check(frame, switch, tag, value, "the tag")
        self.number(made.tag, tag)
        self.align(self.arm_alignment(made))
        refusal = f'raise ValueError("no arm of {made.name} has this tag")'
        self.arms(made, tag, lambda arm: self._arm(arm, name, frame), refusal)

    def _arm(self, arm: UnionArm, name: str, frame: Frame) -> None:
        if arm.type is None:
            self.refuse(f"{name}.value is not None", "the arm is empty, and there is a value")
        else:
            self.inline(arm.type, f"{name}.value", frame)

    # pointers

    def pointer(self, made: Pointer, value: str, frame: Frame) -> None:
        """Write a referent identifier; writing its target is deferred."""
        self._identifier(made, value, "None")
        emit = partial(self.referent, made, value, frame)
        simple = made.kind is PointerKind.UNIQUE and scalar(made.to, self.wire)
        condition = f"{value} is not None"
        self.deferred.append(Deferred(emit, made.to if simple else None, condition, value))

    def scalar_referent(self, deferred: Deferred) -> None:
        if deferred.made is not None:
            self.number(deferred.made, deferred.value)

    def _identifier(self, made: Pointer, value: str, null: str) -> None:
        what = f"full.refer({value})" if _aliased(made) else "ids()"
        if made.kind is not PointerKind.REF:
            what = f"0 if {value} is {null} else {what}"
        word = self.wire.word
        self.take(self.wire.word_code, word, word, what)

    def referent(self, made: Pointer, value: str, frame: Frame, null: str = "None") -> None:
        """Write the target of a pointer, unless it is null."""
        if made.kind is PointerKind.REF:
            self.pointee(made, value, frame)
            return
        self.settle()
        ends: list[Position] = []
        condition = f"{value} is not {null}"
        if _aliased(made):
            condition += f" and full.first({value})"
        with self.branch(f"if {condition}:", ends):
            self.pointee(made, value, frame)
        size = made.to.size if isinstance(made.to, Array | String) else None
        if size is not None and frame.knows(size) and set(names_in(size)):
            name = value.rpartition(".")[2]
            with self.source.block(f"elif {frame.python(size)}:"):
                self.line(f'raise ValueError("{name} is null, but its size is not zero")')
        self.meet([*ends, self.position])

    def pointee(self, made: Pointer, value: str, frame: Frame) -> None:
        if isinstance(made.to, Pointer):
            self._identifier(made.to, value, "NULL")
            self.flush()
            self.referent(made.to, value, frame, "NULL")
        else:
            self.whole(made.to, value, frame)

    def marshalled(self, made: InterfacePointer | WireMarshal, value: str) -> None:
        """Write a pointer whose referent a function of `codec.automation` writes, later."""
        what = "ids()" if _never_null(made) else f"0 if {value} is None else ids()"
        word = self.wire.word
        self.take(self.wire.word_code, word, word, what)
        self.deferred.append(Deferred(partial(self.marshalled_referent, made, value)))

    def marshalled_referent(self, made: InterfacePointer | WireMarshal, value: str) -> None:
        self.settle()
        condition = "if True:" if _never_null(made) else f"if {value} is not None:"
        with self.source.block(condition):
            self.line(f"o = write_{marshaller(made)}(w, o, {value}, ids)")
        self.position.set(1)

    # arrays and strings

    def array(self, made: Array, value: str, frame: Frame) -> None:
        """Write an array with a fixed number of elements."""
        if made.varying:
            self.counted(made, self.prepare(made, value, frame), value)
            return
        name, count = value.rpartition(".")[2], made.count or 0
        if _is_text(made.element):
            items = self._items(made, value)
            self.refuse(f"len({items}) != {2 * count}", f"{name} has not {count} elements")
            self._octets(items, made.element)
            return
        self.refuse(f"len({value}) != {count}", f"{name} has not {count} elements")
        if isinstance(made.element, Integer) and made.element.octet:
            self.take(f"{count}s", count, 1, value)
        else:
            self.elements(made.element, value)

    def prepare(self, made: Array | String, value: str, frame: Frame) -> "_Counted":
        """Count the elements into locals, and check the counts."""
        items = self._items(made, value)
        actual = self.fresh("n")
        name = value.rpartition(".")[2]
        maximum = str(made.count) if not made.conformant else self._maximum(made, actual, frame)
        self.line(f"{actual} = {self._length(made, items, maximum)}")
        if made.limits:
            low, high = made.limits
            self.refuse(f"not {low} <= {actual} <= {high}", f"{name} is not {low}..{high} long")
        if isinstance(made, Array) and not made.varying:
            if made.size is not None:
                self.check(frame, made.size, actual, value, "the size")
        elif maximum != actual:
            self.refuse(f"{actual} > {maximum}", f"{name} is too long")
        if isinstance(made, Array) and made.length is not None:
            self.check(frame, made.length, actual, value, "the length")
        return _Counted(items, actual, maximum)

    def _items(self, made: Array | String, value: str) -> str:
        """The argument of `len`: encoded characters, or the value itself."""
        element = made.character if isinstance(made, String) else made.element
        if isinstance(made, String):
            self.refuse(f"'\\0' in {value}", f"{value.rpartition('.')[2]} has a NUL in it")
        elif not _is_text(element):
            return value
        items = self.fresh("x")
        wide = isinstance(element, Integer) and element.size == 2
        codec = f"'{self.wire.utf16}', 'surrogatepass'" if wide else "'latin-1'"
        self.line(f"{items} = {value}.encode({codec})")
        return items

    def _maximum(self, made: Array | String, actual: str, frame: Frame) -> str:
        """The maximum count: that of the size if elements can be left out."""
        if isinstance(made, Array) and not made.varying:
            return actual
        if isinstance(made.size, Name) and made.size.text in frame.extras:
            return frame.variable(made.size.text)
        if made.size is not None and frame.knows(made.size):
            return frame.python(made.size)
        return actual

    def _length(self, made: Array | String, items: str, maximum: str) -> str:
        element = made.character if isinstance(made, String) else made.element
        number = f"len({items}) // 2" if _is_text(element) else f"len({items})"
        if not isinstance(made, String):
            return number
        if made.size is None:
            return f"{number} + 1"
        return f"{number} + 1 if {items} or {maximum} else 0"

    def counted(self, made: Array | String, found: "_Counted", value: str) -> None:
        """Write the part behind the maximum count: offset, actual count and elements."""
        word, code = self.wire.word, self.wire.word_code
        if isinstance(made, String) or made.varying:
            self.take(code, word, word, "0")
            self.take(code, word, word, found.actual)
        if isinstance(made, String):
            self._string(made, found)
        elif _is_text(made.element) or _is_octet(made.element):
            self._octets(found.items, made.element)
        else:
            self.elements(made.element, value)

    def _string(self, made: String, found: "_Counted") -> None:
        size = made.character.size
        self.settle()
        self.line(f"w({found.items})")
        if made.size is None:
            self.line(f"w({bytes(size)!r})")
        else:
            with self.source.block(f"if {found.actual}:"):
                self.line(f"w({bytes(size)!r})")
        self.line(f"o += {found.actual}" if size == 1 else f"o += {found.actual} * {size}")
        self.position.advance_by_multiple(size)

    def _octets(self, items: str, element: Type) -> None:
        size = element.size if isinstance(element, Integer) else 1
        self.align(size)
        self.settle()
        self.line(f"w({items})")
        self.line(f"o += len({items})")
        self.position.advance_by_multiple(size)

    def elements(self, element: Type, value: str) -> None:
        """Write every element of a list."""
        self.align(alignment(element, self.wire))
        self.settle()
        match element:
            case Integer() | Float() | Enumeration():
                self._numbers(element, value)
            case Guid():
                field = "bytes" if self.wire.big_endian else "bytes_le"
                self.line(f'w(b"".join([each.{field} for each in {value}]))')
                self.line(f"o += len({value}) * 16")
                self.position.advance_by_multiple(16)
            case Pointer() | InterfacePointer() | WireMarshal():
                self._pointers(element, value)
            case StructureType() if self.is_called(element):
                self.call(self.writers.array(element), value)
            case _:
                self.loop(element, value)

    def _numbers(self, element: Type, value: str) -> None:
        code, size = scalar(element, self.wire) or ("", 0)
        if isinstance(element, Enumeration) and code == "H":
            code = "h"
        if isinstance(element, Integer) and element.limits:
            low, high = element.limits
            condition = f"{value} and not {low} <= min({value}) <= max({value}) <= {high}"
            self.refuse(condition, f"an element is not in {low}..{high}")
        form = f'"{self.wire.order}%d{code}" % len({value})'
        self.line(f"w(pack({form}, *{value}))")
        self.line(f"o += len({value}) * {size}")
        self.position.advance_by_multiple(size)

    def _pointers(self, element: Pointer | InterfacePointer | WireMarshal, value: str) -> None:
        if isinstance(element, Pointer) and element.kind is PointerKind.REF:
            raise TypeError("arrays of reference pointers are not supported")
        aliased = isinstance(element, Pointer) and _aliased(element)
        call = "full.refer(each)" if aliased else "ids()"
        null = "False" if _never_null(element) else "each is None"
        word = self.wire.word
        form = f'"{self.wire.order}%d{self.wire.word_code}" % len({value})'
        self.line(f"w(pack({form}, *[0 if {null} else {call} for each in {value}]))")
        self.line(f"o += len({value}) * {word}")
        self.position.advance_by_multiple(word)
        self.deferred.append(Deferred(partial(self._referents, element, value)))

    def _referents(self, element: Pointer | InterfacePointer | WireMarshal, value: str) -> None:
        self.settle()
        name = self.fresh("v")
        with self.source.block(f"for {name} in {value}:"):
            self.position.set(1)
            if isinstance(element, Pointer):
                self.referent(element, name, Frame("", frozenset()))
            else:
                self.marshalled_referent(element, name)
            self.settle()
        self.position.set(1)

    def loop(self, element: Type, value: str) -> None:
        """Write elements one by one, and then the targets of their pointers."""
        name = self.fresh("v")

        def one() -> None:
            item = self.fresh("v")
            self.line(f"{item} = {name}")
            self.inline(element, item, Frame("", frozenset()))

        self.each(f"for {name} in {value}:", alignment(element, self.wire), one)


@dataclass(frozen=True, slots=True)
class _Counted:
    """The elements of an array, and the locals that hold its counts."""

    items: str
    actual: str
    maximum: str


def _is_text(element: Type) -> bool:
    return isinstance(element, Integer) and element.character and element.size == 2


def _is_octet(element: Type) -> bool:
    return isinstance(element, Integer) and element.octet


def _never_null(made: Type) -> bool:
    """Whether there is always a referent: a null BSTR has one; no VARIANT is an empty one."""
    return isinstance(made, WireMarshal) and made.name != "SAFEARRAY"


def _aliased(made: Pointer) -> bool:
    """Whether two full pointers can have the same target."""
    return made.kind is PointerKind.FULL and isinstance(made.to, StructureType)
