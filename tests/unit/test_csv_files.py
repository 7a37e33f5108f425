"""CSV and TSV files are read strictly: in one dialect and with complete rows, or not at all."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import pytest

from tasktransfer.errors import DataError
from tasktransfer.files.csv_file import CsvFile, open_csv
from tasktransfer.files.csv_records import MAX_LINES
from tasktransfer.files.untrusted import MAX_LENGTH

ROWS = ["a cat sat down,animal", "it rains again,weather", "the dog barks,animal"]
MORE = [*ROWS, "the sun is out,weather"]


def opened(folder: Path, *lines: str, name: str = "t.csv", end: str = "\n") -> CsvFile:
    file = folder / name
    file.write_bytes("".join(line + end for line in lines).encode())
    return open_csv(file)


def cells(file: CsvFile) -> list[list[str]]:
    return [row for _, row in file.rows()]


def refusal(folder: Path, *lines: str, name: str = "t.csv") -> str:
    with pytest.raises(DataError) as error:
        opened(folder, *lines, name=name)
    message = str(error.value)
    assert str(folder / name) in message
    assert "; " in message or ". " in message
    assert len(message) < 1000
    return message


# --- valid files are read unchanged ---------------------------------------------------------------

PIECES = (
    "hello, friend", "what; is it", "a\ttab", 'he said "no"', '5" wide', '"all"', "two\nlines, no",
    "three\r\nlines\nand more, of, them", "x|y", "é 好", "Hi, all\nbye", "back\\slash", "'", "0x1",
)  # fmt: skip


def table(seed: int) -> tuple[list[list[str]], dict[str, object]]:
    """Return a table of a user's texts, labels and names, and its CSV as ``csv`` writes it."""
    draw = random.Random(seed)
    kinds = ["text", *draw.choices(["text", "label", "name", "number"], k=draw.randint(1, 4))]

    def cell(kind: str, row: int) -> str:
        words = " ".join(draw.choices(PIECES, k=draw.randint(1, 3)))
        labels = draw.choice(["joy", "anger", "credit card"])
        return {"text": f"{words} {row}", "label": labels, "name": f"d{row // 3}"}.get(kind, "7")

    rows = [[cell(kind, row) for kind in kinds] for row in range(draw.randint(1, 30))]
    header = [f"{kind} {number}" for number, kind in enumerate(kinds)]
    quoting = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    end = draw.choice(["\n", "\r\n"])
    options = {"delimiter": draw.choice(",;\t|"), "quoting": quoting, "lineterminator": end}
    return [header, *rows], options


@pytest.mark.parametrize("seed", range(60))
def test_what_python_writes_is_read_back(seed: int, tmp_path: Path) -> None:
    rows, options = table(seed)
    text = io.StringIO()
    csv.writer(text, **options).writerows(rows)  # type: ignore[arg-type]
    (tmp_path / "t.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    file = open_csv(tmp_path / "t.csv")
    assert [list(file.columns), *cells(file)] == rows
    assert file.dialect.separator == options["delimiter"] and file.dialect.has_quotes


@pytest.mark.parametrize("seed", range(60))
def test_stray_quotation_marks_never_swallow_rows(seed: int, tmp_path: Path) -> None:
    """Two marks, one before a text and one after a later text, enclose everything in between."""
    draw = random.Random(seed)
    separator, count, size = draw.choice(",;\t"), draw.randint(2, 4), draw.randint(4, 40)
    place = draw.randrange(count)
    rows = [
        [f"word {n} of many" if column == place else draw.choice("xyz") for column in range(count)]
        for n in range(size)
    ]
    first = draw.randrange(size - 1)
    rows[first][place] = '"' + rows[first][place]
    rows[draw.randrange(first + 1, size)][place] += '"'
    lines = [separator.join(row) for row in [[f"column{n}" for n in range(count)], *rows]]
    try:
        assert cells(opened(tmp_path, *lines)) == rows
    except DataError as error:
        assert "several rows" in str(error) and "python -c" in str(error)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_are_not_text(end: str, tmp_path: Path) -> None:
    file = opened(tmp_path, "\ufefftext,label", *ROWS, "", end=end)
    assert file.columns == ("text", "label")
    assert cells(file) == [row.split(",") for row in ROWS]
    assert [line for line, _ in file.rows()] == [2, 3, 4]
    notes = "\n".join(file.notes)
    assert "byte order mark at the beginning is skipped" in notes and "skipped (5)" in notes
    assert ("CRLF" in notes) == (end == "\r\n")


def test_a_long_cell_is_read_and_a_longer_one_refused(tmp_path: Path) -> None:
    assert cells(opened(tmp_path, "text,label", "x" * 200_000 + ",y"))[0][0] == "x" * 200_000
    assert ":2: The line is longer" in refusal(tmp_path, "text,label", "x" * MAX_LENGTH + ",y")
    message = refusal(tmp_path, "text,label", '"x', *["y"] * MAX_LINES, '",z')
    assert ":2:1: A quotation mark is" in message


# --- the dialect ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lines", "separator"),
    [
        ("t.csv", ["Who, and to whom;Words, as said", "a;hello", "b;good day, all"], ";"),
        ("t.csv", ["who|words", "a|hello, you", "b|good day"], "|"),
        ("t.tsv", ["who\twords, as said, again", "a\tone, two, three", "b\tno, no, no"], "\t"),
        ("t.csv", ["sep=;", "a,b;c,d", "1,2;3,4"], ";"),
        ("t.csv", ["words", "hello", "bye"], ","),
    ],
)
def test_the_separator_is_what_header_and_rows_agree_on(
    name: str, lines: list[str], separator: str, tmp_path: Path
) -> None:
    file = opened(tmp_path, *lines, name=name)
    assert file.dialect.separator == separator
    below = lines[1:] if lines[0].startswith("sep=") else lines
    assert [list(file.columns), *cells(file)] == [line.split(separator) for line in below]
    assert file.notes[0].startswith(f"{tmp_path / name}: The file is read as CSV with ")


def test_between_tabs_quotation_marks_may_be_text(tmp_path: Path) -> None:
    lines = ['"Yes" he said\tx', '"never ends\ty', 'a "b" c\tx', 'ends only"\ty', '"whole"\tx']
    file = opened(tmp_path, "text\tlabel", *lines, name="t.tsv")
    assert cells(file) == [line.split("\t") for line in lines]
    assert "Quotation marks are read as text" in file.notes[1] and "line 2" in file.notes[1]
    # Marks that are doubled show that a program enclosed the cells: the first line is damaged.
    doubled = refusal(tmp_path, "text\tlabel", *lines[:1], '"a ""b"" c"\tx', name="t.tsv")
    assert ":2:5: A quotation mark ends a cell within a text" in doubled
    labels = [*lines[:1], *(f'text {n}\t"x"' for n in range(4))]
    assert ":2" in refusal(tmp_path, "text\tlabel", *labels, name="t.tsv")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('"he said \\"no, never\\" twice",x', ":3:11: A quotation mark after a back"),
        ('"Yes" he said,x', ":3:5: A quotation mark ends a cell within a text"),
        ('"never ends,x', ":3:1: A quotation mark is never closed"),
        ('hello, "x"', ":3:7: There are blanks before a quotation mark"),
        (
            "one, two,x",
            ":3: The line has 3 columns, but line 1 names 2 ('text, label'; commas between",
        ),
        ("alone", ":3: The line has 1 column,"),
        ("text,label", ":3: The line repeats the header of line 1"),
        ("nul \0,x", ":3: The file is UTF-16 or binary"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_place(
    line: str, told: str, tmp_path: Path
) -> None:
    assert told in refusal(tmp_path, "text,label", ROWS[0], line, *ROWS[1:])


def test_a_cell_more_in_every_row_shifts_no_column(tmp_path: Path) -> None:
    message = refusal(tmp_path, "text,label", *(f"{n},{row}" for n, row in enumerate(ROWS)))
    assert (
        ":2 (lines 2, 3, 4): The line has 3 columns" in message
        and "Give the first column" in message
    )


# --- the header -----------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [range(3), (7, 2, 90)])
def test_an_index_of_pandas_is_passed_over(numbers: range, tmp_path: Path) -> None:
    rows = (f"{number},{row}" for number, row in zip(numbers, ROWS, strict=True))
    file = opened(tmp_path, ",text,label", *rows)
    assert file.columns == ("text", "label")
    assert cells(file) == [row.split(",") for row in ROWS]
    assert "an index that pandas writes" in file.notes[1] and not file.is_plain


def test_another_column_without_a_name_is_refused_unless_it_is_empty(tmp_path: Path) -> None:
    assert "an empty name" in refusal(tmp_path, ",text", *(f"{n % 2},{n}" for n in range(9)))
    joined = opened(tmp_path, ",text", *(f"{n % 20},{n}" for n in range(60)))
    assert joined.columns == ("text",)  # an index that begins again
    assert "an empty name" in refusal(tmp_path, "text,label,", *(f"{row},x" for row in ROWS))
    file = opened(tmp_path, "text,label,,", *(f"{row},," for row in ROWS))
    assert cells(file) == [row.split(",") for row in ROWS]


def test_a_first_dialogue_is_no_header(tmp_path: Path) -> None:
    assert "'weather' is also in the column below it" in refusal(
        tmp_path, "it rains,weather", *MORE
    )
    numbers = refusal(tmp_path, "good,1", "bad,0", "fine,1", "worse,0", "best,1")
    assert ":1: The line looks like data instead of a header, because '1'" in numbers


def test_a_columns_name_may_be_one_of_its_values(tmp_path: Path) -> None:
    rows = "".join(f"d{n},speaker,hello {n}\nd{n},listener,yes {n}\n" for n in range(3))
    (tmp_path / "a.csv").write_text(f"dialogue_id,speaker,text\n{rows}")
    assert open_csv(tmp_path / "a.csv").columns == ("dialogue_id", "speaker", "text")
    # Without another usual name, the first row may be a dialogue.
    (tmp_path / "b.csv").write_text(f"d,speaker,hello\n{rows}")
    with pytest.raises(DataError, match="looks like data instead of a header, because 'speaker'"):
        open_csv(tmp_path / "b.csv")
    long = opened(tmp_path, "this is a text of ten words and not a name,kind", *ROWS)
    assert any("is read as the name of a column" in note for note in long.notes)


def test_names_below_a_header_are_no_data(tmp_path: Path) -> None:
    """A text may be a column's name, and pandas numbers columns without names."""
    assert len(cells(opened(tmp_path, "text,label", *ROWS, "text,weather"))) == 4
    assert opened(tmp_path, "0,1", "a,1", "b,0", "c,1", "d,0").columns == ("0", "1")
    with pytest.raises(DataError, match="Two columns have the name 'text'"):
        opened(tmp_path, "text, text", *ROWS)
    with pytest.raises(DataError, match=":1: The file is empty"):
        opened(tmp_path)


def test_how_a_file_is_read_is_remembered_until_it_changes(tmp_path: Path) -> None:
    first = opened(tmp_path, "text,label", *ROWS)
    assert open_csv(first.path) is first
    assert opened(tmp_path, "text;label", "a;b", "c;d").dialect.separator == ";"
