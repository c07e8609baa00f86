import pytest

from rpcqm.base.completion import Completion, completed, failed, start


def test_callbacks_run_in_order_when_the_outcome_arrives() -> None:
    completion: Completion[int] = Completion()
    seen: list[str] = []
    completion.add_done_callback(lambda done: seen.append(f"first {done.result()}"))
    completion.add_done_callback(lambda done: seen.append(f"second {done.result()}"))
    completion.succeed(7)
    assert seen == ["first 7", "second 7"]


def test_a_second_outcome_is_refused() -> None:
    completion = completed(1)
    with pytest.raises(RuntimeError):
        completion.succeed(2)
    with pytest.raises(RuntimeError):
        completion.fail(ValueError())


def test_a_pending_completion_has_no_result() -> None:
    with pytest.raises(RuntimeError):
        Completion[None]().result()


def test_a_coroutine_goes_on_where_its_completion_resolves() -> None:
    gate: Completion[int] = Completion()

    async def double() -> int:
        return 2 * await gate

    outcome = start(double())
    assert not outcome.done
    gate.succeed(21)
    assert outcome.result() == 42


def test_an_error_travels_through_await() -> None:
    async def wait() -> int:
        return int(await failed(KeyError("gone")))

    assert isinstance(start(wait()).error, KeyError)


def test_none_is_a_value() -> None:
    completion: Completion[None] = Completion()
    completion.succeed(None)
    assert completion.done
    assert completion.result() is None


def test_who_alone_has_a_completion_chooses_what_it_gives() -> None:
    told: list[str] = []
    outcome: Completion[None] = Completion()
    given = outcome.giving("answer")
    given.add_done_callback(lambda done: told.append(done.result()))
    outcome.succeed(None)
    assert told == ["answer"]


def test_a_failure_is_given_as_it_is() -> None:
    outcome: Completion[None] = Completion()
    given = outcome.giving("answer")
    outcome.fail(KeyError())
    with pytest.raises(KeyError):
        given.result()


def test_what_is_resolved_gives_nothing_else() -> None:
    with pytest.raises(RuntimeError):
        completed(None).giving("answer")
