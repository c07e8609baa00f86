"""What a replay found: as lines, as JSON, as JUnit XML."""

from xml.etree import ElementTree

from rpcqm.capture.replay.outcome import DIFFERENT, SAME, SKIPPED, Outcome, Result
from rpcqm.capture.report import utc_time
from rpcqm.capture.values import plain


def as_object(result: Result, file: str, server: str, notes: list[str]) -> dict[str, object]:
    """The whole result for programs."""
    return {
        "file": file,
        "server": server,
        "calls": len(result.outcomes),
        "same": result.count(SAME),
        "different": result.count(DIFFERENT),
        "skipped": result.count(SKIPPED),
        "seconds": round(result.seconds, 6),
        "ignored": dict(sorted(result.ignored.items())),
        "notes": notes,
        "results": [_result(number, each) for number, each in enumerate(result.outcomes, 1)],
    }


def _result(number: int, outcome: Outcome) -> dict[str, object]:
    call = outcome.call
    return {
        "number": number,
        "time": utc_time(call.time),
        "conversation": call.conversation.number,
        "interface": call.interface_name,
        "opnum": call.opnum,
        "name": call.name,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "captured_ms": call.duration_ms,
        "live_ms": outcome.duration_ms,
        "differences": [
            {
                "field": each.field,
                "rule": each.rule,
                "captured": plain(each.captured),
                "live": plain(each.live),
            }
            for each in outcome.differences
        ],
    }


def lines(result: Result) -> list[str]:
    """Each call that was not answered alike, then the sums."""
    found = []
    for number, outcome in enumerate(result.outcomes, 1):
        call = outcome.call
        title = f"{number:>5}  {call.interface_name}.{call.name}"
        if outcome.verdict == SKIPPED:
            found.append(f"{title}  skipped: {outcome.reason}")
        for each in outcome.differences:
            captured, live = _short(each.captured), _short(each.live)
            found.append(f"{title}  {each.field}: captured {captured}, live {live} ({each.rule})")
    found.append(
        f"{len(result.outcomes)} calls: {result.count(SAME)} answered alike, "
        f"{result.count(DIFFERENT)} differently, {result.count(SKIPPED)} skipped; "
        f"{result.seconds:.3f} s"
    )
    for reason, count in sorted(result.ignored.items()):
        found.append(f"  {count} fields not compared: {reason}")
    return found


def _short(value: object) -> str:
    text = str(plain(value))
    return text if len(text) <= 60 else f"{text[:57]}…"


def junit(result: Result, file: str) -> str:
    """The result as JUnit XML: one test case per call."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"replay of {file}",
        tests=str(len(result.outcomes)),
        failures=str(result.count(DIFFERENT)),
        skipped=str(result.count(SKIPPED)),
        errors="0",
        time=f"{result.seconds:.6f}",
    )
    for number, outcome in enumerate(result.outcomes, 1):
        call = outcome.call
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=call.interface_name,
            name=f"{number} {call.name}",
            time=f"{(outcome.duration_ms or 0) / 1000:.6f}",
        )
        if outcome.verdict == SKIPPED:
            ElementTree.SubElement(case, "skipped", message=outcome.reason)
        elif outcome.differences:
            first = outcome.differences[0].field
            failure = ElementTree.SubElement(case, "failure", message=f"{first} differs")
            failure.text = "\n".join(
                f"{each.field}: captured {_short(each.captured)}, live {_short(each.live)}"
                for each in outcome.differences
            )
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"
