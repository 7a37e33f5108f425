"""Progress of a command and its remaining time; colours only on terminals."""

from __future__ import annotations

import io
from itertools import count

import pytest

from tasktransfer.files.progress import count_progress, format_clock_time, show_progress
from tasktransfer.files.terminal import apply_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def spoken(out: io.StringIO, seconds_each: float, items: int = 8) -> str:
    """Return the progress lines for items that take this long."""
    ticks = (seconds_each * number for number in count(-1))  # the first reading is the start
    clock = lambda: max(0.0, next(ticks))  # noqa: E731
    assert [*show_progress(range(items), "reading", out, clock)] == [*range(items)]
    return out.getvalue()


def test_nothing_is_said_of_what_takes_less_than_two_seconds() -> None:
    assert spoken(Terminal(), 0.2) == spoken(io.StringIO(), 0.2) == ""


def test_a_terminal_has_one_line_with_the_time_left() -> None:
    lines = spoken(Terminal(), 1.0).split("\r\x1b[K")
    assert lines[1] == "reading: 2 of 8, 0:02 elapsed, 0:06 left"
    assert lines[-2:] == ["reading: 7 of 8, 0:07 elapsed, 0:01 left", ""]


def test_a_log_has_a_line_every_ten_seconds() -> None:
    assert spoken(io.StringIO(), 4.0).splitlines() == [
        "reading: 1 of 8, 0:04 elapsed, 0:28 left",
        "reading: 4 of 8, 0:16 elapsed, 0:16 left",
        "reading: 7 of 8, 0:28 elapsed, 0:04 left",
    ]


def test_work_that_tells_how_much_more_it_has_done_is_counted() -> None:
    out, ticks = io.StringIO(), count(step=5)
    with count_progress(300, "answering", out, lambda: float(next(ticks))) as more:
        for _ in range(3):
            more(100)
    assert out.getvalue().splitlines() == [
        "answering: 100 of 300, 0:05 elapsed, 0:10 left",
        "answering: 300 of 300, 0:15 elapsed, 0:00 left",
    ]


def test_nothing_is_left_on_the_terminal_when_work_breaks_off() -> None:
    out, ticks = Terminal(), count()
    with pytest.raises(ValueError):
        for number in show_progress(range(9), "reading", out, lambda: float(next(ticks))):
            if number == 5:
                raise ValueError
    assert out.getvalue().endswith("\r\x1b[K")


def test_times() -> None:
    assert [format_clock_time(s) for s in (5, 65, 7265, float("nan"))] == [
        "0:05",
        "1:05",
        "2:01:05",
        "?",
    ]


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert apply_colour("slow", "yellow", Terminal()) == "\x1b[33mslow\x1b[0m"
    assert apply_colour("slow", "yellow", io.StringIO()) == "slow"
    monkeypatch.setenv("TERM", "dumb")
    assert apply_colour("slow", "yellow", Terminal()) == "slow"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert apply_colour("slow", "yellow", Terminal()) == "slow"
