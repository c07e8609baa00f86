"""Decoders: a type of the tree → Python source that reads it.

Every count is checked against the remaining octets before it is used, and every correlation, range
and terminator as [MS-RPCE] 3.1.1.5.3 has it for target level 6.0. Octets behind the last value are
ignored: only an insufficient octet stream is invalid ([MS-RPCE] 3.1.1.5.3.2.2.3).
"""

from functools import partial

from rpcqm.codec.idl.expression import names_in
from rpcqm.codec.idl.nodes import Expression, Name
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Field,
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
from rpcqm.codec.ndr.classes import class_of
from rpcqm.codec.ndr.layout import (
    Position,
    alignment,
    marshaller,
    minimum,
    open_end,
    recursive,
    scalar,
)
from rpcqm.codec.ndr.source import Deferred, Emitter, Frame, Functions, Source

MAXIMUM_DEPTH = 16
"""Structures of an argument that hold others of their kind.

Deeper than any of MSMQ, and little stack.

Bound `rpc.nesting` [levels]: the call is refused with RPC_X_BAD_STUB_DATA.
"""

_PARAMETERS = "buf, o, end, depth, seen"


class Readers(Functions):
    """The functions of a module that read structures and arrays of them."""

    def structure(self, made: StructureType) -> str:
        """The name of `f(buf, o, end, depth, seen)`, which gives the value and the offset."""
        return self.function("read", made, _PARAMETERS, self._structure_body)

    def array(self, made: StructureType) -> str:
        """The name of `f(buf, o, end, depth, seen, count)` for the elements of an array."""
        return self.function("list", made, f"{_PARAMETERS}, count", self._array_body)

    def decoder(self, source: Source) -> "Decoder":
        """The writer of the body of one of the functions."""
        return Decoder(self, source, Position())

    def _decoder(self, source: Source, made: StructureType) -> "Decoder":
        if recursive(made):
            with source.block(f"if depth > {MAXIMUM_DEPTH}:"):
                source.line(f'raise DecodeError("{made.name} is nested too deeply", o)')
        return self.decoder(source)

    def _structure_body(self, source: Source, made: StructureType) -> None:
        decoder = self._decoder(source, made)
        decoder.position.set(self.entry(made))
        value = decoder.fresh("v")
        decoder.structure(made, value, last=True)
        decoder.run_deferred()
        decoder.settle()
        decoder.line(f"return {value}, o")

    def _array_body(self, source: Source, made: StructureType) -> None:
        decoder = self._decoder(source, made)
        decoder.position.set(1)
        decoder.loop(made, "count", "items")
        decoder.run_deferred()
        decoder.settle()
        decoder.line("return items, o")


class Decoder(Emitter):
    """Writes the body of one function that reads."""

    def __init__(self, readers: Readers, source: Source, position: Position) -> None:
        super().__init__(readers.module, source, position)
        self.readers = readers

    # lines

    def emit_run(self, code: str, what: list[str]) -> None:
        if code == "B":
            self.line(f"{what[0]} = buf[{self.at()}]")
        else:
            targets = ", ".join(what) + ("," if len(what) == 1 else "")
            self.line(f"{targets} = {self.module.unpack(code)}(buf, {self.at()})")

    def align_at_run_time(self, align: int) -> None:
        self.line(f"o = ({self.at()} + {align - 1}) & {-align}")
        self.fixed, self.delta = False, 0

    def refuse(self, condition: str, reason: str) -> None:
        """Emit a check: raise DecodeError where the condition holds."""
        with self.source.block(f"if {condition}:"):
            self.line(f'raise DecodeError("{reason}", {self.at()})')

    def check(self, frame: Frame, expected: Expression, actual: str, of: str, what: str) -> None:
        """Emit the check of a correlation, now or when the other value has been read."""
        if not frame.knows(expected):
            return
        reason = f"{what} of {of.rpartition('.')[2]} is not what it depends on"
        missing = frame.missing(expected)
        if missing:
            condition = f"{of} is not None and {actual} != {frame.python(expected)}"
            frame.late.append((missing, partial(self.refuse, condition, reason)))
        else:
            self.flush()
            self.refuse(f"{actual} != {frame.python(expected)}", reason)

    def late_checks(self, frame: Frame) -> None:
        self.flush()
        for check in frame.ready():
            check()

    # types

    def whole(
        self, made: Type, target: str, frame: Frame, switch: Expression | None = None
    ) -> None:
        """Read an outermost value: a parameter, or the target of a pointer."""
        outer, self.deferred = self.deferred, []
        if isinstance(made, StructureType) and self.is_called(made):
            self.align(self.readers.entry(made))
            self.call(self.readers.structure(made), target)
        elif isinstance(made, Array | String) and made.conformant:
            count = self.fresh("n")
            self.take(self.wire.word_code, self.wire.word, self.wire.word, count)
            self.flush()
            self.counted(made, count, target, frame)
        else:
            self.inline(made, target, frame, switch, last=True)
        self.run_deferred()
        self.deferred = outer

    def call(self, function: str, target: str, count: str = "") -> None:
        self.settle()
        arguments = f"buf, o, end, depth + 1, seen{', ' + count if count else ''}"
        self.line(f"{target}, o = {function}({arguments})")
        self.position.set(1)

    def inline(
        self,
        made: Type,
        target: str,
        frame: Frame,
        switch: Expression | None = None,
        last: bool = False,
    ) -> None:
        """Read the part of a value that is in place.

        `last`: nothing else of the outermost value is in place behind it.
        """
        match made:
            case StructureType():
                self.structure(made, target, last)
            case Union():
                self.union(made, target, frame, switch, last)
            case Pointer():
                self.pointer(made, target, frame)
            case InterfacePointer() | WireMarshal():
                self.marshalled(made, target)
            case Array():
                self.array(made, target, frame)
            case String():
                self.counted(made, str(made.count), target, frame)
            case _:
                self.number(made, target)

    def number(self, made: Type, target: str) -> None:
        """Read a type of fixed size."""
        code, size = scalar(made, self.wire) or ("", 0)
        after = None
        match made:
            case Integer(truth=True):
                after = partial(self.line, f"{target} = {target} != 0")
            case Integer(limits=(low, high)):
                after = partial(self._range, target, low, high)
            case Enumeration() if code == "H":
                after = partial(self._range, target, 0, 0x7FFF)
            case Guid():
                function = "guid_big_endian" if self.wire.big_endian else "guid"
                after = partial(self.line, f"{target} = {function}({target})")
            case ContextHandleType() if self.wire.big_endian:
                after = partial(self.line, f"{target} = handle_big_endian({target})")
        self.take(code, size, alignment(made, self.wire), target, after)

    def _range(self, target: str, low: int, high: int) -> None:
        name = target.rpartition(".")[2]
        condition = f"{target} > {high}" if low == 0 else f"not {low} <= {target} <= {high}"
        self.refuse(condition, f"{name} is not in {low}..{high}")

    # structures and unions

    def structure(self, made: StructureType, target: str, last: bool = False) -> None:
        """Read the part of a structure that is in place."""
        count = ""
        if open_end(made):
            count = self.fresh("n")
            self.take(self.wire.word_code, self.wire.word, self.wire.word, count)
        self.align(alignment(made, self.wire))
        value = target if target.isidentifier() else self.fresh("v")
        self.line(f"{value} = new({self.module.known(class_of(made), 'c')})")
        if value != target:
            self.line(f"{target} = {value}")
        frame = Frame(value, frozenset(field.name for field in made.fields), read=set())
        for field in made.fields:
            final = field is made.fields[-1]
            self._field(field, frame, count if final else "", last and final)
        if self.wire.ndr64 and not count:
            self.align(alignment(made, self.wire))
        self.late_checks(frame)

    def _field(self, field: Field, frame: Frame, count: str, last: bool) -> None:
        target, made = frame.variable(field.name), field.type
        if count and isinstance(made, Array | String):
            self.flush()
            self.counted(made, count, target, frame)
        else:
            self.inline(made, target, frame, field.switch, last and not self.wire.ndr64)
        if frame.read is not None:
            frame.read.add(field.name)

    def union(
        self, made: Union, target: str, frame: Frame, switch: Expression | None, last: bool
    ) -> None:
        """Read a union: its tag, which must equal its switch, and the selected arm."""
        if made.tag is None:
            raise TypeError(f"{made.name} has no tag")
        if self.wire.ndr64:
            self.align(alignment(made, self.wire))
        tag, value = self.fresh("t"), self.fresh("v")
        self.number(made.tag, tag)
        self.flush()
        if switch is not None:
            self.check(frame, switch, tag, target, "the tag")
        self.line(f"{value} = {target} = new({self.module.known(class_of(made), 'c')})")
        self.line(f"{value}.tag = {tag}")
        self.align(self.arm_alignment(made))
        refusal = f'raise DecodeError("no arm of {made.name} has this tag", o)'
        at_once = last and not self.deferred
        self.arms(made, tag, lambda arm: self._arm(arm, value, frame), refusal, at_once)

    def _arm(self, arm: UnionArm, value: str, frame: Frame) -> None:
        if arm.type is None:
            self.line(f"{value}.value = None")
        else:
            self.inline(arm.type, f"{value}.value", frame)

    # pointers

    def pointer(self, made: Pointer, target: str, frame: Frame) -> None:
        """Read a referent identifier; reading its target is deferred."""
        name = self.fresh("p")
        self.take(self.wire.word_code, self.wire.word, self.wire.word, name)
        emit = partial(self.referent, made, name, target, frame)
        simple = made.kind is PointerKind.UNIQUE and scalar(made.to, self.wire)
        self.deferred.append(Deferred(emit, made.to if simple else None, name, target))

    def scalar_referent(self, deferred: Deferred) -> None:
        if deferred.made is not None:
            self.number(deferred.made, deferred.value)

    def referent(
        self, made: Pointer, name: str, target: str, frame: Frame, null: str = "None"
    ) -> None:
        """Read the target of the pointer `name`, or set the result to `null`."""
        if made.kind is PointerKind.REF:
            if self.wire.ndr64:
                self.flush()
                self.refuse(f"not {name}", "a reference pointer is null")
            self.pointee(made, target, frame)
            return
        self.settle()
        ends: list[Position] = []
        first = "if"
        if made.kind is PointerKind.FULL:
            kind = self.module.known(made.to, "k")
            with self.branch(f"if {name} in seen:", ends):
                self.line(f"{target} = alias(seen, {name}, {kind}, o)")
            first = "elif"
        with self.branch(f"{first} {name}:", ends):
            self.pointee(made, target, frame)
            if made.kind is PointerKind.FULL:
                self.flush()
                self.line(f"seen[{name}] = {kind}, {target}")
        with self.branch("else:", ends):
            self._null(made, target, frame, null)
        self.meet(ends)

    def pointee(self, made: Pointer, target: str, frame: Frame) -> None:
        if isinstance(made.to, Pointer):
            name = self.fresh("p")
            self.take(self.wire.word_code, self.wire.word, self.wire.word, name)
            self.referent(made.to, name, target, frame, "NULL")
        else:
            self.whole(made.to, target, frame)

    def _null(self, made: Pointer, target: str, frame: Frame, null: str) -> None:
        """Refuse a null pointer to an array that should have elements."""
        self.line(f"{target} = {null}")
        size = made.to.size if isinstance(made.to, Array | String) else None
        if size is None or not frame.knows(size) or not set(names_in(size)):
            return
        reason = f"{target.rpartition('.')[2]} is null, but its size is not zero"
        if frame.missing(size):
            condition = f"{target} is {null} and {frame.python(size)}"
            frame.late.append((frame.missing(size), partial(self.refuse, condition, reason)))
        else:
            self.refuse(frame.python(size), reason)

    def marshalled(self, made: InterfacePointer | WireMarshal, target: str) -> None:
        """Read a pointer whose referent a function of `codec.automation` reads, later."""
        name = self.fresh("p")
        self.take(self.wire.word_code, self.wire.word, self.wire.word, name)
        self.deferred.append(Deferred(partial(self.marshalled_referent, made, name, target)))

    def marshalled_referent(
        self, made: InterfacePointer | WireMarshal, name: str, target: str
    ) -> None:
        self.settle()
        ends: list[Position] = []
        with self.branch(f"if {name}:", ends):
            self.line(f"{target}, o = read_{marshaller(made)}(buf, o, end)")
            self.position.set(1)
        with self.branch("else:", ends):
            self.line(f"{target} = {'EMPTY' if marshaller(made) == 'VARIANT' else None}")
        self.meet(ends)

    # arrays and strings

    def array(self, made: Array, target: str, frame: Frame) -> None:
        """Read an array with a fixed number of elements."""
        if made.varying:
            self.counted(made, str(made.count), target, frame)
        elif isinstance(made.element, Integer) and made.element.octet:
            self.take(f"{made.count}s", made.count or 0, 1, target)
        else:
            self.elements(made.element, str(made.count), target)

    def counted(self, made: Array | String, count: str, target: str, frame: Frame) -> None:
        """Read the part of an array or a string behind its maximum count, and check it."""
        if made.conformant:
            self._maximum(made, count, target, frame)
        actual = count
        if isinstance(made, String) or made.varying:
            first, actual = self.fresh("n"), self.fresh("n")
            word = self.wire.word
            self.take(self.wire.word_code, word, word, first)
            self.take(self.wire.word_code, word, word, actual)
            self.flush()
            name = target.rpartition(".")[2]
            self.refuse(f"{first} or {actual} > {count}", f"the counts of {name} are wrong")
        if isinstance(made, String):
            self.string(made, actual, target)
            return
        if made.length is not None:
            self._length(made, count, actual, target, frame)
        self.elements(made.element, actual, target)

    def _maximum(self, made: Array | String, count: str, target: str, frame: Frame) -> None:
        if made.limits:
            low, high = made.limits
            self.refuse(f"not {low} <= {count} <= {high}", f"the size is not in {low}..{high}")
        if made.size is None:
            return
        self.check(frame, made.size, count, target, "the size")
        if isinstance(made.size, Name) and made.size.text in frame.extras:
            self.line(f"{frame.variable(made.size.text)} = {count}")

    def _length(self, made: Array, count: str, actual: str, target: str, frame: Frame) -> None:
        if made.length is not None:
            self.check(frame, made.length, actual, target, "the length")
        if made.length == made.size and not frame.knows(made.length):
            self.refuse(f"{actual} != {count}", "the length is not the size")

    def string(self, made: String, count: str, target: str) -> None:
        """Read the characters of a string up to its terminator, which must be the last."""
        size = made.character.size
        end = self.fresh("e")
        if made.size is not None:
            with self.source.block(f"if not {count}:"):
                self.line(f'{target} = ""')
            with self.source.block("else:"):
                self._characters(size, count, end, target)
            self.line(f"o = {self.at()} + {_times(count, size)}")
        else:
            self._characters(size, count, end, target)
            self.line(f"o = {end}")
        self.fixed, self.delta = False, 0
        self.position.advance_by_multiple(size)

    def _characters(self, size: int, count: str, end: str, target: str) -> None:
        at = self.at()
        name = target.rpartition(".")[2]
        self.line(f"{end} = {at} + {_times(count, size)}")
        last = " or ".join(f"buf[{end} - {i + 1}]" for i in range(size))
        short = f"not {count} or {end} > end"
        self.refuse(f"{short} or {last}", f"{name} does not end with NUL")
        codec = "'latin-1'" if size == 1 else f"'{self.wire.utf16}', 'surrogatepass'"
        self.line(f"{target} = str(buf[{at} : {end} - {size}], {codec})")
        self.refuse(f"'\\0' in {target}", f"{name} has a NUL before its end")

    def elements(self, element: Type, count: str, target: str) -> None:
        """Read `count` elements."""
        self.align(alignment(element, self.wire))
        self.flush()
        match element:
            case Integer(octet=True) | Integer(character=True):
                self._text(element, count, target)
            case Integer() | Float() | Enumeration():
                self._numbers(element, count, target)
            case Guid():
                self._guids(count, target)
            case Pointer() | InterfacePointer() | WireMarshal():
                self._pointers(element, count, target)
            case StructureType() if self.is_called(element):
                self.call(self.readers.array(element), target, count)
            case _:
                self.settle()
                items = self.fresh("i")
                self.loop(element, count, items)
                self.line(f"{target} = {items}")

    def _span(self, count: str, size: int, target: str) -> tuple[str, str]:
        """The beginning and the end of `count` elements of `size` octets, which must be there."""
        at, end = self.at(), self.fresh("e")
        self.line(f"{end} = {at} + {_times(count, size)}")
        name = target.rpartition(".")[2]
        with self.source.block(f"if {end} > end:"):
            self.line(f'raise DecodeError("{name} ends too early", {at})')
        return at, end

    def _advance_to(self, end: str, size: int) -> None:
        self.line(f"o = {end}")
        self.fixed, self.delta = False, 0
        self.position.advance_by_multiple(size)

    def _text(self, element: Integer, count: str, target: str) -> None:
        at, end = self._span(count, element.size, target)
        if element.octet:
            self.line(f"{target} = bytes(buf[{at}:{end}])")
        else:
            codec = f"'{self.wire.utf16}', 'surrogatepass'"
            self.line(f"{target} = str(buf[{at}:{end}], {codec})")
        self._advance_to(end, element.size)

    def _numbers(self, element: Type, count: str, target: str) -> None:
        code, size = scalar(element, self.wire) or ("", 0)
        at, end = self._span(count, size, target)
        form = f'"{self.wire.order}%d{code}" % {count}'
        self.line(f"{target} = list(unpack_from({form}, buf, {at}))")
        if isinstance(element, Enumeration) and code == "H":
            self.refuse(f"{target} and max({target}) > 32767", "an enumeration is out of range")
        if isinstance(element, Integer) and element.limits:
            low, high = element.limits
            condition = f"{target} and not {low} <= min({target}) <= max({target}) <= {high}"
            self.refuse(condition, f"an element is not in {low}..{high}")
        self._advance_to(end, size)

    def _guids(self, count: str, target: str) -> None:
        at, end = self._span(count, 16, target)
        function = "guid_big_endian" if self.wire.big_endian else "guid"
        each = f"{function}(bytes(buf[i : i + 16])) for i in range({at}, {end}, 16)"
        self.line(f"{target} = [{each}]")
        self._advance_to(end, 16)

    def _pointers(
        self, element: Pointer | InterfacePointer | WireMarshal, count: str, target: str
    ) -> None:
        if isinstance(element, Pointer) and element.kind is PointerKind.REF:
            raise TypeError("arrays of reference pointers are not supported")
        identifiers, items = self.fresh("p"), self.fresh("i")
        self._numbers(Integer("", 0), count, identifiers)
        self.deferred.append(Deferred(partial(self._referents, element, identifiers, items)))
        self.line(f"{target} = {items} = []")

    def _referents(
        self, element: Pointer | InterfacePointer | WireMarshal, identifiers: str, items: str
    ) -> None:
        self.settle()
        name, item = self.fresh("p"), self.fresh("v")
        with self.source.block(f"for {name} in {identifiers}:"):
            self.position.set(1)
            if isinstance(element, Pointer):
                self.referent(element, name, item, Frame("", frozenset()))
            else:
                self.marshalled_referent(element, name, item)
            self.settle()
            self.line(f"{items}.append({item})")
        self.position.set(1)

    def loop(self, element: Type, count: str, items: str) -> None:
        """Read elements one by one, and then the targets of their pointers."""
        self.flush()
        least = _times(count, minimum(element, self.wire))
        self.refuse(f"{least} > end - ({self.at()})", "an array ends too early")
        self.line(f"{items} = []")

        def one() -> None:
            value = self.fresh("v")
            self.inline(element, value, Frame("", frozenset()))
            self.flush()
            self.line(f"{items}.append({value})")

        self.each(f"for _ in range({count}):", alignment(element, self.wire), one)


def _times(count: str, size: int) -> str:
    if count.isdigit():
        return str(int(count) * size)
    return count if size == 1 else f"{count} * {size}"
