"""The IDL loader: what it understands, what it refuses, and where it says so."""

from typing import Any

import pytest

from rpcqm.codec.idl.expression import evaluate, names_in, to_python
from rpcqm.codec.idl.load import idl_names, load_idl, read_idl
from rpcqm.codec.idl.nodes import (
    Binary,
    ConstantNode,
    IdlError,
    Name,
    Number,
    Unary,
)
from rpcqm.codec.idl.syntax import parse_idl
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Guid,
    Integer,
    InterfacePointer,
    Parameter,
    Pointer,
    PointerKind,
    String,
    StructureType,
    Union,
)
from rpcqm.codec.interface import load
from tests.support.codec.idl_text import file_of, loader

LONG = Integer("long", 4, signed=True)
WCHAR = Integer("wchar_t", 2, character=True)
UNIQUE, FULL, REF = PointerKind.UNIQUE, PointerKind.FULL, PointerKind.REF


def parameters(text: str, attributes: str = "pointer_default(unique)") -> dict[str, Parameter]:
    """The parameters of a method with that parameter list."""
    operation = file_of(f"void f({text});", attributes).interfaces["example"].operations[0]
    assert operation is not None
    return {p.name: p for p in operation.parameters}


def type_of(text: str, attributes: str = "pointer_default(unique)") -> Any:
    (only,) = parameters(text, attributes).values()
    return only.type


def member(text: str, name: str = "x") -> Any:
    structure = file_of(f"typedef struct {{ {text} }} S;").types["S"]
    assert isinstance(structure, StructureType)
    return next(field.type for field in structure.fields if field.name == name)


# The files of idl/.

OPNUMS = {
    "epm": (7, 7),
    "mgmt": (5, 5),
    "qm2qm": (11, 11),
    "qmcomm": (35, 24),
    "qmcomm2": (4, 4),
    "qmmgmt": (2, 2),
    "remoteread": (16, 15),
}


@pytest.mark.parametrize("name", OPNUMS)
def test_every_opnum_is_declared(name: str) -> None:
    operations = load(name).operations
    used = [o for o in operations if o is not None]
    assert (len(operations), len(used)) == OPNUMS[name]
    assert all(operations[o.opnum] is o for o in used)


def test_opnums_without_a_call_are_those_that_the_documents_name() -> None:
    unused = {n: [i for i, o in enumerate(load(n).operations) if o is None] for n in OPNUMS}
    assert {n: found for n, found in unused.items() if found} == {
        "qmcomm": [0, 5, 13, 21, 24, 25, 29, 30, 32, 33, 34],
        "remoteread": [1],
    }


def test_every_file_can_be_read() -> None:
    names = idl_names()
    assert {"dtyp", "mqmq", *OPNUMS} <= set(names)
    for name in names:
        assert load_idl(name).name == f"{name}.idl"


def test_a_type_is_the_same_in_every_file_that_imports_it() -> None:
    here = load("remoteread").operation("R_OpenQueue").declaration.parameters[0].type
    there = load("qmcomm").operation("rpc_QMOpenQueueInternal").declaration.parameters[0].type
    assert here is there is load_idl("mqmq").types["QUEUE_FORMAT"]


# Base types and typedefs.


@pytest.mark.parametrize(
    ("text", "size", "signed"),
    [
        ("small", 1, True),
        ("unsigned small", 1, False),
        ("boolean", 1, False),
        ("byte", 1, False),
        ("char", 1, True),
        ("unsigned char", 1, False),
        ("short int", 2, True),
        ("unsigned short", 2, False),
        ("wchar_t", 2, False),
        ("int", 4, True),
        ("unsigned", 4, False),
        ("unsigned long int", 4, False),
        ("hyper", 8, True),
        ("unsigned __int64", 8, False),
        ("signed __int8", 1, True),
        ("__int16", 2, True),
        ("unsigned __int32", 4, False),
        ("__int3264", 0, True),
    ],
)
def test_a_base_type_has_a_size_and_a_sign(text: str, size: int, signed: bool) -> None:
    made = type_of(f"[in] {text} x")
    assert (made.size, made.signed) == (size, signed)


@pytest.mark.parametrize("text", ["unsigned void", "long short", "unsigned unsigned long long"])
def test_a_base_type_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(IdlError, match="there is no type"):
        type_of(f"[in] {text} x")


def test_a_typedef_can_precede_what_it_names() -> None:
    file = file_of("typedef later_tag LATER; typedef struct _later { long x; } later_tag;")
    assert file.types["LATER"] is file.types["later_tag"]


def test_annotations_correct_a_declaration() -> None:
    file = file_of(
        """
        typedef /* rpcqm: unsigned */ long CODE;
        typedef /* rpcqm: guid -- one value */ struct { long a; byte b[12]; } ID;
        typedef /* rpcqm: name(NICE) */ struct _ugly { long x; } ugly;
        """
    )
    assert file.types["CODE"] == Integer("long", 4)
    assert file.types["ID"] == Guid()
    nice = file.types["ugly"]
    assert isinstance(nice, StructureType)
    assert (nice.name, nice.aliases) == ("NICE", ["ugly"])


def test_an_annotation_is_read_like_an_attribute() -> None:
    assert type_of("[in] /* rpcqm: string -- because */ const wchar_t* x") == String(WCHAR)
    assert type_of("[in] /* a comment that says rpcqm: string */ const wchar_t* x") == WCHAR


def test_enumerators_count_on_from_the_last_that_was_given() -> None:
    made = file_of("typedef enum { A, B = 0x10, C, D = A + 2, } E;").types["E"]
    assert isinstance(made, Enumeration)
    assert made.values == {"A": 0, "B": 16, "C": 17, "D": 2}
    assert not made.v1
    wide = file_of("typedef [v1_enum] enum { A } E;").types["E"]
    assert isinstance(wide, Enumeration)
    assert wide.v1


# Pointers ([C706] 4.2.20, [MS-RPCE] 2.2.4.10).


def test_the_outermost_pointer_of_a_parameter_is_a_reference_pointer() -> None:
    assert type_of("[in] long* x") == LONG
    assert type_of("[out] long** x") == Pointer(UNIQUE, LONG)


@pytest.mark.parametrize("kind", PointerKind)
def test_an_attribute_sets_the_kind_of_the_outermost_pointer(kind: PointerKind) -> None:
    expected: Any = LONG if kind is REF else Pointer(kind, LONG)
    assert type_of(f"[in, {kind.value}] long* x") == expected
    assert member(f"[{kind.value}] long* x;") == Pointer(kind, LONG)


def test_pointer_default_sets_the_kind_of_all_others() -> None:
    assert type_of("[in] long** x", "pointer_default(ptr)") == Pointer(FULL, LONG)
    assert type_of("[in] long** x", "local") == Pointer(UNIQUE, LONG), "[MS-RPCE] 2.2.4.9"


def test_an_attribute_of_a_parameter_that_is_only_out_is_its_inner_pointer_s() -> None:
    inner = Pointer(FULL, LONG)
    assert type_of("[out, ptr] long** x") == inner
    assert type_of("[in, out, ptr] /* rpcqm: inner */ long** x") == inner
    assert type_of("[in, out, ptr] long** x") == Pointer(FULL, Pointer(UNIQUE, LONG))
    assert type_of("[in, out, unique] long* x") == Pointer(UNIQUE, LONG)


def test_an_attribute_overrides_the_kind_of_a_pointer_typedef() -> None:
    body = "typedef long* LP; void f([in] LP a, [in, ptr] LP b, [in, unique] LP* c);"
    operation = file_of(body).interfaces["example"].operations[0]
    assert operation is not None
    kinds = [p.type for p in operation.parameters]
    assert kinds == [LONG, Pointer(FULL, LONG), Pointer(UNIQUE, Pointer(UNIQUE, LONG))]


# Arrays and strings.


def test_size_is_binds_to_the_dimensions_from_the_outside() -> None:
    size = Name("n")
    assert type_of_x("[size_is(n)] long* x") == Array(LONG, size=size)
    assert type_of_x("[size_is(n)] long x[]") == Array(LONG, size=size)
    assert type_of_x("[size_is(n)] long x[*]") == Array(LONG, size=size)
    assert type_of_x("[size_is(,n)] long** x") == Pointer(UNIQUE, Array(LONG, size=size))
    assert type_of_x("[max_is(n)] long* x") == Array(LONG, size=Binary("+", size, Number(1)))


def type_of_x(text: str) -> Any:
    attributes, _, declaration = text.partition("]")
    return parameters(f"[in] long n, {attributes.replace('[', '[in, ')}]{declaration}")["x"].type


def test_length_is_makes_an_array_varying() -> None:
    made = type_of_x("[size_is(n), length_is(n / 2)] wchar_t* x")
    assert made == Array(WCHAR, size=Name("n"), length=Binary("/", Name("n"), Number(2)))
    assert made.conformant
    assert made.varying
    assert type_of_x("[length_is(n)] long x[8]") == Array(LONG, count=8, length=Name("n"))


def test_string_binds_to_the_innermost_dimension() -> None:
    assert type_of("[in, string] wchar_t* x") == String(WCHAR)
    assert member("unsigned long n; [size_is(n)] [string] wchar_t** x;") == Pointer(
        UNIQUE, Array(Pointer(UNIQUE, String(WCHAR)), size=Name("n"))
    )
    fixed = member("[string] wchar_t x[N + 1];".replace("N", "63"))
    assert fixed == String(WCHAR, count=64)
    assert not fixed.conformant


def test_range_is_for_numbers_and_counts() -> None:
    assert type_of("[in, range(1, 0x10)] long x") == LONG.within(1, 16)
    assert type_of("[in, range(1, 2)] long* x") == LONG.within(1, 2)
    limited = type_of_x("[range(1, 2), size_is(n)] long x[]")
    assert limited.limits == (1, 2)
    with pytest.raises(IdlError, match="of no number"):
        type_of("[in, range(1, 2)] GUID* x")


# Unions.


def test_a_union_takes_its_tag_from_what_switches_it() -> None:
    made = member(
        "unsigned short kind; [switch_is(kind)] union"
        " { [case(1, 2)] long a; [case(3)] ; [default] short b; } x;"
    )
    assert isinstance(made, Union)
    assert made.tag == Integer("unsigned short", 2)
    assert [(arm.labels, arm.name) for arm in made.arms] == [((1, 2), "a"), ((3,), "")]
    assert made.default is not None
    assert made.default.name == "b"


def test_switch_type_gives_the_type_of_the_tag() -> None:
    file = file_of(
        "typedef [switch_type(short)] union { [case(1)] long a; } U;"
        "typedef struct { short s; [switch_is(s)] U u; } S;"
    )
    made = file.types["U"]
    assert isinstance(made, Union)
    assert made.tag == Integer("short", 2, signed=True)


def test_an_encapsulated_union_has_a_tag_of_its_own() -> None:
    made = file_of(
        "typedef union switch (long tag) u { case 1: case 2: short a; case 3: ; default: byte b; }"
        " U;"
    ).types["U"]
    assert isinstance(made, Union)
    assert made.encapsulated
    assert made.tag == LONG
    assert [arm.labels for arm in made.arms] == [(1, 2), (3,)]


def test_ms_union_is_an_attribute_of_a_union_or_an_interface() -> None:
    text = "short kind; [switch_is(kind){}] union {{ [case(1)] hyper a; }} x;"
    assert member(text.format(", ms_union")).ms_union
    assert not member(text.format("")).ms_union
    whole = file_of("typedef struct { " + text.format("") + " } S;", "ms_union").types["S"]
    assert isinstance(whole, StructureType)
    assert isinstance(whole.fields[-1].type, Union)
    assert whole.fields[-1].type.ms_union


def test_anonymous_members_are_named_after_where_they_are() -> None:
    structure = load_idl("qmcomm").types["CACTransferBufferV1"]
    assert isinstance(structure, StructureType)
    union = structure.nested["u"]
    assert union.name == "CACTransferBufferV1_u"
    assert set(union.nested) == {"Send", "Receive"}
    assert union.nested["Send"].name == "CACTransferBufferV1_Send"


# Context handles, interfaces and operations.


def test_context_handles_say_whether_calls_wait_for_each_other() -> None:
    handles = {
        o.name: h for o in load("remoteread").operations if o is not None for h in o.context_handles
    }
    assert handles["R_CloseQueue"].serialize
    assert not handles["R_StartReceive"].serialize
    assert handles["R_CloseQueue"].direction == "in,out"
    assert handles["R_OpenQueue"].direction == "out"
    assert all(h.strict and not h.type_strict for h in handles.values())
    (commit,) = load("qmcomm").operation("R_QMCommitTransaction").context_handles
    assert (commit.type_name, commit.serialize, commit.strict) == (
        "RPC_INT_XACT_HANDLE",
        True,
        False,
    )


def test_context_handles_can_be_declared_in_place_and_in_arrays() -> None:
    assert type_of("[in, context_handle] void* x") == ContextHandleType("x")
    body = "typedef [context_handle] void* H; void f([in] long n, [in, size_is(n)] H x[]);"
    operation = file_of(body).interfaces["example"].operations[0]
    assert operation is not None
    assert operation.parameters[1].type == Array(ContextHandleType("H"), size=Name("n"))


def test_an_interface_states_its_strictness_and_its_syntaxes() -> None:
    declared = file_of(
        "void f();",
        "strict_context_handle, type_strict_context_handle, syntaxes(NDR64)",
    ).interfaces["example"]
    assert declared.strict_context_handle
    assert declared.type_strict_context_handle
    assert declared.syntaxes == {"NDR64"}
    assert declared.version == (1, 2)


def test_callbacks_have_opnums_of_their_own() -> None:
    """[MS-RPCE] 2.2.4.2."""
    declared = file_of(
        "void a(); [callback] void b([in] long x); void c(); [callback] long d();"
    ).interfaces["example"]
    assert [(o.name, o.opnum) for o in declared.operations if o] == [("a", 0), ("c", 1)]
    assert [(o.name, o.opnum) for o in declared.callbacks] == [("b", 0), ("d", 1)]


def test_a_local_method_takes_an_opnum_and_is_not_on_the_wire() -> None:
    declared = file_of("void a(); [local] void b(); void c();").interfaces["example"]
    assert [o and o.name for o in declared.operations] == ["a", None, "c"]


def test_an_interface_begins_where_its_base_ends() -> None:
    file = read_idl(
        """
        [uuid(00000000-0000-0000-0000-000000000001)] interface base { void a(); void b(); }
        [uuid(00000000-0000-0000-0000-000000000002)] interface derived : base { void c(); }
        """,
        "two.idl",
    )
    operations = file.interfaces["derived"].operations
    assert [(o.name, o.opnum) for o in operations if o] == [("a", 0), ("b", 1), ("c", 2)]


def test_interface_pointers_are_known_by_their_interface() -> None:
    body = "interface IThing; void f([in] GUID* riid, [in, iid_is(riid)] IThing* x);"
    operation = file_of(body).interfaces["example"].operations[0]
    assert operation is not None
    assert operation.parameters[1].type == InterfacePointer("IThing", Name("riid"))


def test_imports_are_found_through_imports() -> None:
    load_text = loader(
        low="typedef long LOW; const long LIMIT = 5;",
        middle='import "low.idl"; typedef LOW MIDDLE;',
    )
    file = read_idl('import "middle.idl"; typedef LOW HERE[LIMIT];', "top.idl", load_text)
    assert file.types["HERE"] == Array(LONG, count=5)


# Expressions.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("0x10 | 0x01 << 1", 0x12),
        ("~0 & 0xFF", 255),
        ("7 / 2 + 7 % 2", 4),
        ("1 < 2 && 2 >= 2 || 0", 1),
        ("!1", 0),
        ("1 == 2 ? 3 : 4 != 5 ? 6 : 7", 6),
        ("-3 + +1", -2),
        ("6 ^ 3", 5),
        ("16 >> 2", 4),
        ("A * 10uL", 30),
    ],
)
def test_an_expression_has_the_value_that_c_gives_it(text: str, value: int) -> None:
    (node,) = parse_idl(f"const long X = {text};", "x.idl")
    assert isinstance(node, ConstantNode)
    assert evaluate(node.value, {"A": 3}) == value
    names = {name: {"A": 3}[name] for name in names_in(node.value)}
    assert int(eval(to_python(node.value, lambda name: str(names[name])))) == value


def test_a_dereference_is_the_value_itself() -> None:
    star = Unary("*", Name("count"))
    assert to_python(star, lambda name: f"v.{name}") == "v.count"
    assert list(names_in(star)) == ["count"]


# Errors.


@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        ("void f([in] NOTHING x);", 6, "there is no type NOTHING"),
        ("typedef struct {\n long x\n} S;", 8, "unexpected '}'"),
        ("void f([in] long ?);", 6, "unexpected '?'"),
        ("\n\nvoid f([in, strnig] wchar_t* x);", 8, "[strnig] is not understood here"),
        ("void f(long x);", 6, "x is neither in nor out"),
        ("void f([in] long x[]);", 6, "an open array needs [size_is]"),
        ("void f([in] long n, [in, size_is(n)] long x);", 6, "more counts than dimensions"),
        ("void f([in, string] long* x);", 6, "[string] is for characters"),
        ("typedef long A; typedef short A;", 6, "A is declared twice"),
        ("typedef struct { union { [case(1)] long a; } u; } S;", 6, "a union needs [switch_is]"),
        ("typedef struct { [switch_is(k)] union { [case(1)] long a; } u; } S;", 6, "no member k"),
        ("typedef struct { double k; [switch_is(k)] union { [case(1)] long a; } u; } S;", 6, "tag"),
        ("typedef struct { long k; [switch_is(k)] union { [case(Q)] long a; } u; } S;", 6, "Q"),
        ("const long X = 1 / 0;", 6, "division"),
        ("void Opnum3NotUsedOnWire(void);", 6, "stands at opnum 0"),
        ("typedef [context_handle] long H;", 6, "a context handle is a void*"),
        ("void f([in] void* x);", 6, "void and handle_t have no values"),
        ("long* f();", 6, "returns a number or nothing"),
        ("typedef struct { long x[2][2]; } S;", 6, "arrays of arrays"),
        ("void f([in, size_is(5f1d3b1e-8d0e-4c7b-9d9f-6a1c6b5d9a03)] long* x);", 6, "expressions"),
    ],
)
def test_an_error_says_where_and_what(body: str, line: int, reason: str) -> None:
    with pytest.raises(IdlError) as caught:
        file_of(body)
    assert caught.value.file == "example.idl"
    assert reason in caught.value.reason
    assert caught.value.line == line
    assert str(caught.value).startswith(f"example.idl:{line}: ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("interface x { void f();", "ends too early"),
        ("[version(1.0)] interface x { }", "interface x has no uuid"),
        ("interface x : y { }", "no interface y"),
        ('import "nowhere.idl";', "there is no such file"),
        (
            "[uuid(00000000-0000-0000-0000-000000000001), pointer_default(weak)] interface x { }",
            "ref, unique or ptr",
        ),
        ("/* rpcqm: string", "ends too early"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(text: str, reason: str) -> None:
    with pytest.raises(IdlError, match=reason):
        read_idl(text, "broken.idl")


def test_a_name_that_is_no_interface_cannot_be_loaded() -> None:
    with pytest.raises(ValueError, match="declares 0 interfaces"):
        load("mqmq")
    with pytest.raises(KeyError):
        load("remoteread").operation("R_Nothing")
