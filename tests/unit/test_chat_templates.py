"""Chat templates: prompts are rendered completely and on every day equally.

A broken template is refused before anything is prompted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2.sandbox import ImmutableSandboxedEnvironment

from small_models import Loader
from tasktransfer import cli
from tasktransfer.core.specs import Family, ModelSpec
from tasktransfer.designs import open_study
from tasktransfer.errors import ModelError
from tasktransfer.evaluation.prompting import chat_template
from tasktransfer.evaluation.prompting.load import load_prompt_tokenizer, load_prompted_model
from tasktransfer.evaluation.prompting.template_process import render_chats
from tasktransfer.tasks.asking import Prompt
from tasktransfer.training.hardware import Hardware

PLAIN = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"
PARTS = (
    "{% for m in messages %}[{{ m.role }}]{% for part in m.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endfor %}"
)
BOTH = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
    "{{ m.content[0].text }}?{% endif %}{% endfor %}"
)
ONLY_USER = PLAIN.replace("%}[", "%}{{ raise_exception('!') if m.role == 'assistant' }}[", 1)
DATED = "Today is {{ strftime_now('%-d %B %Y (%A)') }}.\n" + PLAIN
FEW = Prompt(("Is it late?", "Yes it is", "Dialogue:  A: hi\n B: <ho>"))

Loaded = Callable[..., Any]


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test templates in this process, because a process for each takes seconds."""

    def render_here(request: str) -> tuple[list[Any], None]:
        return render_chats(**json.loads(request)), None

    monkeypatch.setattr(chat_template, "render_in_process", render_here)
    chat_template.find_message_form.cache_clear()


def copied(folder: Path, to: Path, template: Any, file: str = "tokenizer_config.json") -> Path:
    """Copy a checkpoint's folder, with a chat template."""
    to.mkdir(parents=True, exist_ok=True)
    for each in folder.iterdir():
        if each.is_file() and each.name != "chat_template.jinja":
            (to / each.name).write_bytes(each.read_bytes())
    if file == "tokenizer_config.json":
        config = json.loads((to / file).read_text())
        (to / file).write_text(json.dumps({**config, "chat_template": template}))
    else:
        (to / file).write_text(template)
    return to


@pytest.fixture
def decoder(load: Loader, models_folder: Path, in_process: None) -> Path:
    return models_folder / "decoder"


@pytest.fixture
def load_texts(decoder: Path, tmp_path: Path) -> Loaded:
    """Return a function that loads the prompts of a decoder with a template."""
    return lambda *template: texts_of(copied(decoder, tmp_path / "m", *template))


def texts_of(folder: Path, chat: Any = "auto", family: Family = "decoder") -> Any:
    return load_prompt_tokenizer(ModelSpec("m", family, "w", 512), str(folder), None, chat)


@pytest.mark.parametrize("file", ["tokenizer_config.json", "chat_template.jinja"])
@pytest.mark.parametrize("template", [PLAIN, PARTS, BOTH])
def test_the_text_is_in_the_prompt(template: str, file: str, load_texts: Loaded) -> None:
    texts = load_texts(template, file)
    rendered = texts.render_prompt(FEW)
    assert all(turn in rendered for turn in FEW.turns)
    assert "?Dialogue" not in rendered  # plain text, if a template takes both
    assert texts.notes == ((chat_template.PARTS_NOTE,) if template == PARTS else ())


CHANGED = {
    "drops all": "{{ bos_token }}Answer:",
    "lower case": "{% for m in messages %}{{ m.content | lower }}{% endfor %}",
    "cut": "{% for m in messages %}{{ m.content[:200] }}{% endfor %}",
    "first line": "{% for m in messages %}{{ m.content.split('\\n')[0] }}{% endfor %}",
    "escaped": "{% for m in messages %}{{ m.content | e }}{% endfor %}",
    "as JSON": "{{ messages | tojson }}",
    "without digits": "{% for m in messages %}{{ m.content | replace('1', '') }}{% endfor %}",
    "syntax": "{% for m in messages %}{{ m.content }",
    "not closed": "{% for m in messages %}{{ m.content }}",
    "raises": "{% for m in messages %}{{ raise_exception('no ' + m.role) }}{% endfor %}",
    "missing variable": "{{ documents[0].text }}{{ messages[0].content }}",
    "missing function": "{{ now().year }}{{ messages[0].content }}",
    "missing filter": "{{ messages[0].content | markdown }}",
    "only system": "{% for m in messages if m.role == 'system' %}{{ m.content }}{% endfor %}",
    "division": "{{ 1 / 0 }}",
    "recursion": "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "long": "{{ messages[0].content }}{{ 'no' * 200000 }}",
    "forbidden": "{{ messages[0].content.__class__.__mro__ }}",
    "by chance": "{{ range(10**5) | random }}{% for m in messages %}{{ m.content }}{% endfor %}",
    "blank": "  \n",
    "number": 7,
    "named": [{"name": "tool_use", "template": PLAIN}, {"name": "rag", "template": PLAIN}],
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_template_that_changes_the_text_or_fails_is_refused(
    case: str, decoder: Path, tmp_path: Path
) -> None:
    folder = copied(decoder, tmp_path / "m", CHANGED[case])
    with pytest.raises(ModelError, match=r"tokenizer_config.json: The chat template .*chat: no"):
        texts_of(folder)
    assert texts_of(folder, "no").render_prompt(FEW) == FEW.text


def test_the_default_of_several_templates_is_taken(load_texts: Loaded) -> None:
    named = [{"name": "tool_use", "template": "?"}, {"name": "default", "template": PLAIN}]
    assert load_texts(named).render_prompt(FEW).endswith("[assistant]")


def test_every_prompt_is_checked(load_texts: Loaded) -> None:
    """A template may interpret a part of a text as one of its own markers."""
    template = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}"
    texts = load_texts(template)
    assert texts.render_prompt(Prompt(("Hello",))) == "Hello"
    with pytest.raises(ModelError, match=r"leaves out or changes .*'A: </think> B: no'"):
        texts.render_prompt(Prompt(("A: </think> B: no",)))


def test_a_template_without_an_assistant_renders_prompts_without_examples(
    load_texts: Loaded,
) -> None:
    texts = load_texts(ONLY_USER)
    assert "Hello" in texts.render_prompt(Prompt(("Hello",)))
    with pytest.raises(ModelError, match="cannot render a prompt: TemplateError: !"):
        texts.render_prompt(FEW)


def test_an_encoder_decoder_is_prompted_in_plain_text(
    load: Loader, models_folder: Path, tmp_path: Path
) -> None:
    folder = copied(models_folder / "encoder_decoder", tmp_path / "m", PLAIN)
    texts = texts_of(folder, family="encoder_decoder")
    assert texts.render_prompt(FEW) == FEW.text
    note = "it has a chat template, but an encoder-decoder is prompted in plain text"
    assert texts.notes == (note,)
    with pytest.raises(ModelError, match=r"prompted in plain text\. Set chat: auto"):
        texts_of(folder, "yes", "encoder_decoder")


# --- dates --------------------------------------------------------------------------------------


def test_a_template_that_asks_for_the_date_gets_the_same_on_every_day(load_texts: Loaded) -> None:
    texts = load_texts(DATED)
    expected = "Today is 26 July 2024 (Friday).\n[user] Is it late?"
    assert texts.render_prompt(FEW).startswith(expected)
    (note,) = texts.notes
    assert "date" in note and "26 July 2024" in note


FORMATS = [f"%{code}" for code in "aAbBcdFgGHIjmMpSTuUVwWxXyY"]
FORMATS += ["%d %b %Y", "%Y-%m-%d", "%-d/%-m", "100 %%", "%%d", "%B %d, %Y", "at %H:%M", "no"]


@pytest.mark.parametrize("form", FORMATS)
def test_the_pinned_date_is_formatted_as_python_does(form: str) -> None:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = chat_template.fix_date(f"{{{{ strftime_now({form!r}) }}}}")
    expected = chat_template.TEMPLATE_DATE.strftime(form)
    assert environment.from_string(template).render() == expected


@pytest.mark.parametrize(
    "begin", ["", "\n", "  {% if true %}yes{% endif %}\n", "{% set a = 1 %}\n"]
)
def test_pinning_changes_nothing_else(begin: str) -> None:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["strftime_now"] = chat_template.TEMPLATE_DATE.strftime
    template = begin + "{{ 'with' if strftime_now is defined }} {{ strftime_now('%Y') }}\n x"
    pinned = chat_template.fix_date(template)
    assert pinned != template
    texts = [environment.from_string(each).render() for each in (template, pinned)]
    assert texts[0] == texts[1]
    assert chat_template.fix_date(PLAIN) == PLAIN


# --- the process that tries templates -----------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        pytest.param(PARTS, None, id="good"),
        pytest.param(
            "{% for a in range(9**5) %}{% for b in range(9**5) %}{% endfor %}{% endfor %}",
            "does not end within",
            id="endless",
            marks=pytest.mark.slow,
        ),
        pytest.param("{{ 'a' * 10**9 }}", "cannot render a prompt: MemoryError", id="large"),
    ],
)
def test_a_template_has_limited_time_and_memory(template: str, problem: str | None) -> None:
    chat_template.find_message_form.cache_clear()
    begin = time.monotonic()
    parts, told = chat_template.find_message_form(template, "{}")
    assert (told is None) if problem is None else (problem in str(told))
    assert parts == (template == PARTS)
    assert time.monotonic() - begin < chat_template.MAX_SECONDS


# --- studies ------------------------------------------------------------------------------------


def write_study(model: Path, **prompted: Any) -> None:
    settings = {"trained": False, "max_length": 512}
    study = {
        "study": "s",
        "data": {"tiny_world": {"dialogues": 120}},
        "datasets": {"DailyDialog": {"tasks": ["emotion_recognition"]}},
        "models": [{"name": "chat", "family": "decoder", "checkpoint": str(model), **settings}],
        "algorithms": ["baseline"],
        "prompted": [{"model": "chat", "shots": 0, **prompted}],
    }
    Path("study.yaml").write_text(yaml.safe_dump(study))


def test_validate_tries_the_templates_of_prompted_models(
    decoder: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(copied(decoder, here / "good", DATED))
    assert cli.main(["validate", "--config", "study.yaml"]) == 0
    assert "model chat: its chat template asks for today's date" in capsys.readouterr().err
    broken = copied(decoder, here / "broken", CHANGED["syntax"], "chat_template.jinja")
    write_study(broken)
    assert cli.main(["validate", "--config", "study.yaml"]) == 4
    error = capsys.readouterr().err
    assert f"{broken}/chat_template.jinja: The chat template cannot" in error
    write_study(broken, chat="no")
    assert cli.main(["validate", "--config", "study.yaml"]) == 0
    write_study(copied(decoder, here / "user", ONLY_USER))
    assert cli.main(["validate", "--config", "study.yaml"]) == 0
    write_study(here / "user", shots=[0, 2])
    assert cli.main(["validate", "--config", "study.yaml"]) == 4


def test_prompts_are_not_longer_than_the_model(
    decoder: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(decoder, here / "m", PLAIN)
    write_study(folder, max_length=100_000)
    assert cli.main(["validate", "--config", "study.yaml"]) == 4
    error = capsys.readouterr().err
    assert "has positions for" in error and "its max_length in the study is 100000" in error
    spec = ModelSpec("m", "decoder", "w", 100_000)
    with pytest.raises(ModelError, match="has positions for"):
        load_prompted_model(spec, str(folder), None, Hardware("float32"))


def test_another_template_is_another_evaluation(decoder: Path, here: Path) -> None:
    """For a prompted model; trainings do not read the template."""

    def digests(template: str, *, trained: bool) -> tuple[str, ...]:
        folder = copied(decoder, here / "m", template, "chat_template.jinja")
        write_study(folder)
        study = yaml.safe_load(Path("study.yaml").read_text())
        study["models"][0]["trained"] = trained
        if trained:
            del study["prompted"]
        Path("study.yaml").write_text(yaml.safe_dump(study))
        return tuple(node.digest for node in open_study("study.yaml").plan.nodes)

    assert digests(PLAIN, trained=False) != digests(DATED, trained=False)
    assert digests(PLAIN, trained=True) == digests(DATED, trained=True)
