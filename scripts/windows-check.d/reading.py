"""Where the answers of a Windows machine differ from what rpcqm does and its pages say."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from questions import NOT_ASKED, Question, Report, code_of, value_of_octets


class Verdict(StrEnum):
    SAME = "same"
    AS_SAID = "as the pages say"
    DIFFERS = "differs"
    NOT_ASKED = "not asked"
    UNKNOWN = "no question of ours"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one question at one place."""

    verdict: Verdict
    id: str
    of: str
    answer: str
    question: Question | None


def compared(asked: dict[str, Question], report: Report) -> Iterator[Row]:
    """A row for each question and place, and one for each answer to nothing."""
    for question in asked.values():
        for of in question.of:
            answer = report.answers.get((question.id, of), NOT_ASKED)
            yield Row(_verdict(question, of, answer), question.id, of, answer, question)
    for (name, of), answer in report.answers.items():
        if name not in asked or of not in asked[name].of:
            yield Row(Verdict.UNKNOWN, name, of, answer, None)


def _verdict(question: Question, of: str, answer: str) -> Verdict:
    if answer.partition(" ")[0] == NOT_ASKED:
        return Verdict.NOT_ASKED
    if question.json:
        same = value_of_octets(answer) == question.json
        return Verdict.SAME if same else Verdict.DIFFERS
    if code_of(answer) == question.here:
        return Verdict.SAME
    if of == "windows" and question.windows and code_of(answer) == question.windows:
        return Verdict.AS_SAID
    return Verdict.DIFFERS


def page(asked: dict[str, Question], report: Report) -> Iterator[str]:
    """What a person reads: differences first, then what was not asked, then the counts."""
    rows = list(compared(asked, report))
    about = ", ".join(f"{name} {value}" for name, value in report.about.items())
    yield f"From {about or 'a machine that tells nothing about itself'}"
    yield from (f"  remark: {each}" for each in report.remarks)
    for row in rows:
        if row.verdict in (Verdict.DIFFERS, Verdict.UNKNOWN):
            yield from _told(row)
    missing = [f"{row.id} {row.of}" for row in rows if row.verdict is Verdict.NOT_ASKED]
    if missing:
        yield f"not asked: {', '.join(missing)}"
    yield "; ".join(f"{_count(rows, verdict)} {verdict}" for verdict in Verdict)


def _told(row: Row) -> Iterator[str]:
    if row.question is None:
        yield f"{row.id} {row.of}: {row.answer} ({row.verdict})"
        return
    yield f"{row.id} {row.of}: {row.question.asks}"
    yield f"  {'Windows' if row.of == 'windows' else 'rpcqm, asked by Windows'}: {row.answer}"
    yield f"  here: {row.question.here or row.question.json}"
    if row.question.windows and row.of == "windows":
        yield f"  our pages say that Windows answers: {row.question.windows}"
    if row.question.why:
        yield f"  see {', '.join(row.question.why)}"


def _count(rows: list[Row], verdict: Verdict) -> int:
    return sum(row.verdict is verdict for row in rows)


def differs(asked: dict[str, Question], report: Report) -> bool:
    """Whether anything is otherwise than it is said to be."""
    return any(row.verdict is Verdict.DIFFERS for row in compared(asked, report))
