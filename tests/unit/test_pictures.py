"""Every picture in reports and documents has a text alternative."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tasktransfer.designs import get_design, open_study
from tasktransfer.present.html import PAGE, create_environment
from tasktransfer.present.page.page import Picture

ROOT = Path(__file__).resolve().parents[2]
PRESETS = ("demo", "empathetic-demo", "panel-demo", "probes-demo")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_figure_of_a_report_says_what_it_shows(preset: str) -> None:
    study = open_study(ROOT / f"workflow/presets/{preset}.yaml", need_inputs=False)
    shown = get_design(study.config).analysis(study)
    captions = {f.name: shown.read_caption(f.text or f.name, f.caption) for f in shown.figures}
    assert captions
    assert not {name: text for name, text in captions.items() if len(text) < 60}


def test_the_page_gives_it_to_the_picture() -> None:
    """The title and the caption, by which the picture is read."""
    template = create_environment(PAGE).get_template("page.html.j2")
    assert (
        'alt="{{ figure.title }}. {{ figure.caption }}"' in Path(str(template.filename)).read_text()
    )
    assert {"title", "caption"} <= Picture.__dataclass_fields__.keys()


def test_every_picture_of_the_documents_is_described() -> None:
    found = [
        (path.relative_to(ROOT), alt, target)
        for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for alt, target in IMAGE.findall(path.read_text("utf-8"))
    ]
    assert found
    assert not [each for each in found if len(each[1]) < 20]
    local = [ROOT / path.parent / target for path, _, target in found if "://" not in target]
    assert not [path for path in local if not path.is_file()]
