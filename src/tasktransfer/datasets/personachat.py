"""PersonaChat in ConvAI2's version: the next utterance of the speaker whose persona is known.

The folder ``convai2`` contains ``valid_self_original_no_cands.txt`` and optionally
``train_self_original_no_cands.txt``. Lines are numbered from 1 in each dialogue. The first lines
are the persona. Each following line has an utterance of the other speaker and, after a tab, the
answer.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tasktransfer.datasets.dataset import Dataset, Reader, Release, TaskSize, TurnLength
from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.datasets.reply_pairs import (
    assign_random_splits,
    build_probe_task,
    build_reply_instance,
    build_reply_task,
    measure_turn_lengths,
)
from tasktransfer.errors import DataError, format_location
from tasktransfer.files.data_files import read_lines
from tasktransfer.tasks.card import SPLITS, Instance
from tasktransfer.tasks.compose import split_words

NAME, FOLDER = "PersonaChat", "convai2"
FILES = {"train": "train_self_original_no_cands.txt", "dev": "valid_self_original_no_cands.txt"}
PERSONA_PREFIX = "your persona: "
DIALOGUE_PARTS = 5
MIDDLE_WORDS = 1000
"""Number of words for WordCont: the mid-frequency words of the training dialogues."""

_STOP_WORDS = """
a about above across after afterwards again against all almost alone along already also although
always am among amongst amoungst amount an and another any anyhow anyone anything anyway
anywhere are around as at back be became because become becomes becoming been before beforehand
behind being below beside besides between beyond bill both bottom but by call can cannot cant co
con could couldnt cry d de describe detail didn do doesn don done down due during each eg eight
either eleven else elsewhere empty enough etc even ever every everyone everything everywhere
except few fifteen fifty fill find fire first five for former formerly forty found four from
front full further get give go had has hasnt have he hence her here hereafter hereby herein
hereupon hers herself him himself his how however hundred i ie if in inc indeed interest into is
isn it its itself keep last latter latterly least less ll ltd m made many may me meanwhile might
mill mine more moreover most mostly move much must my myself name namely neither never
nevertheless next nine no nobody none noone nor not nothing now nowhere of off often on once one
only onto or other others otherwise our ours ourselves out over own part per perhaps please put
rather re s same see seem seemed seeming seems serious several she should show side since
sincere six sixty so some somehow someone something sometime sometimes somewhere still such
system t take ten than that the their them themselves then thence there thereafter thereby
therefore therein thereupon these they thick thin third this those though three through
throughout thru thus to together too top toward towards twelve twenty two un under until up upon
us ve very via was we well were what whatever when whence whenever where whereafter whereas
whereby wherein whereupon wherever whether which while whither who whoever whole whom whose why
will with within without won would yet you your yours yourself yourselves
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Stop words of scikit-learn for English, and pieces of contractions."""

_CITATION = "Zhang et al. 2018, Personalizing Dialogue Agents (ACL); Dinan et al. 2020, ConvAI2"
REPLY = build_reply_task("PersonaChat_reply", NAME, _CITATION, "none stated")
PROBES = {
    "UtteranceLoc": "Which fifth of the dialogue the turn is in.",
    "WordCont": "The last word of the context that is one of 1,000 mid-frequency words.",
    "PersonalInfo": "The content words of the answering speaker's persona.",
}
CARDS = (
    REPLY,
    *(
        build_probe_task(name, NAME, asks, _CITATION, "none stated")
        for name, asks in PROBES.items()
    ),
)


@dataclass(frozen=True, slots=True)
class PersonaDialogue:
    """A dialogue: alternating turns of the other and the answering speaker."""

    name: str
    persona: tuple[str, ...]
    turns: tuple[str, ...]


def _find_files(folder: Path) -> dict[str, Path]:
    path = folder / FOLDER
    files = {split: path / name for split, name in FILES.items() if (path / name).is_file()}
    if "dev" not in files:
        raise DataError(
            f"{path / FILES['dev']}: The file is missing. Copy the file of ConvAI2 into the "
            "folder, or change data.release."
        )
    return files


def read_dialogues(file: Path) -> list[PersonaDialogue]:
    """Read the dialogues of a file, each named by a digest of its text.

    Raises:
        DataError: a line is not valid. The message names file, line and value.
    """
    dialogues: list[tuple[list[str], list[str]]] = []
    for number, line in read_lines(file):
        where = format_location(file, number)
        count, _, text = line.partition(" ")
        if count == "1":
            dialogues.append(([], []))
        if not dialogues or not count.isdecimal():
            raise DataError(
                f"{where}: The line {line[:60]!r} does not begin with its number. Fetch the file "
                "again."
            )
        persona, turns = dialogues[-1]
        if int(count) != 1 + len(persona) + len(turns) // 2:
            raise DataError(
                f"{where}: The line has the number {count}, but the expected number is "
                f"{1 + len(persona) + len(turns) // 2}. Fetch the file again."
            )
        if text.startswith(PERSONA_PREFIX):
            persona.append(text.removeprefix(PERSONA_PREFIX))
            continue
        both = text.split("\t")[:2]
        if len(both) != 2 or not all(both):
            raise DataError(
                f"{where}: The line contains {text[:60]!r}, but it must contain an utterance, a "
                "tab and an answer. Fetch the file again."
            )
        turns += both
    if not dialogues:
        raise DataError(f"{file}: The file contains no dialogues. Fetch the file again.")
    named = {}
    for location, (persona, turns) in enumerate(dialogues, start=1):
        if not turns:
            raise DataError(
                f"{file}, dialogue {location}: The dialogue has no turn after the persona. Remove "
                "the dialogue."
            )
        content = "\n".join([*persona, *turns])
        name = f"convai2-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
        named[name] = PersonaDialogue(name, tuple(persona), tuple(turns))
    return list(named.values())


class _ReleaseReader:
    """Dialogues and instances of a release.

    Without a training set the validation set is split again at random.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def dialogues(self) -> Mapping[str, list[PersonaDialogue]]:
        """Dialogues by split. If there is a training file, half of validation is the test set."""
        files = _find_files(self.folder)
        by_file = {split: read_dialogues(file) for split, file in files.items()}
        check_disjoint_splits(
            (
                SplitDialogue(dialogue.name, split, " ".join(dialogue.turns), str(files[split]))
                for split, dialogues in by_file.items()
                for dialogue in dialogues
            ),
            f"Fetch {FILES['train']} again, or remove it",
        )
        validation = sorted(by_file["dev"], key=lambda dialogue: dialogue.name)
        if "train" in by_file:
            half = len(validation) // 2
            return {**by_file, "dev": validation[:half], "test": validation[half:]}
        splits = assign_random_splits(
            [dialogue.name for dialogue in validation], str(self.folder / FOLDER)
        )
        return {split: [d for d in validation if splits[d.name] == split] for split in SPLITS}

    @cached_property
    def middle_words(self) -> frozenset[str]:
        """Mid-frequency words of the training dialogues, for the probe WordCont."""
        return find_middle_words(
            turn for dialogue in self.dialogues["train"] for turn in dialogue.turns
        )

    def iterate_instances(self, task: str, split: str) -> Iterator[Instance]:
        """Yield the instances in a split, one per turn of the speaker with a known persona."""
        for dialogue in self.dialogues[split]:
            answers = len(dialogue.turns) // 2
            personal = _find_content_words(dialogue.persona)
            for number in range(answers):
                index = 2 * number + 1
                labels = {
                    "UtteranceLoc": (str(number * DIALOGUE_PARTS // answers),),
                    "PersonalInfo": personal,
                    **self._find_last_middle_word(dialogue.turns[:index]),
                }
                yield build_reply_instance(
                    dialogue.name, index, dialogue.turns, task, labels, "chat"
                )

    def _find_last_middle_word(self, turns: Sequence[str]) -> dict[str, tuple[str, ...]]:
        backwards = reversed(split_words(" ".join(turns)))
        last = next((word for word in backwards if word in self.middle_words), None)
        return {} if last is None else {"WordCont": (last,)}

    def iterate_turn_lengths(self) -> Iterator[TurnLength]:
        """Yield the lengths of all turns in words."""
        for split in SPLITS:
            for dialogue in self.dialogues[split]:
                yield from measure_turn_lengths(
                    dialogue.name, split, dialogue.turns, ("other", "self")
                )


def find_middle_words(turns: Iterable[str]) -> frozenset[str]:
    """Find the mid-frequency words among words that occur at least three times."""
    counts = Counter(word for turn in turns for word in split_words(turn))
    ranked = sorted((w for w, n in counts.items() if n > 2), key=lambda w: (-counts[w], w))
    begin = max(0, (len(ranked) - MIDDLE_WORDS) // 2)
    return frozenset(ranked[begin : begin + MIDDLE_WORDS])


def _find_content_words(sentences: Sequence[str]) -> tuple[str, ...]:
    found = {word for sentence in sentences for word in split_words(sentence)}
    return tuple(sorted(word for word in found if word.isalpha() and word not in STOP_WORDS))


def _find_release(folder: Path) -> str:
    _find_files(folder)
    return str(folder / FOLDER)


def _compute_revision(folder: Path, memo: Path | None) -> str:
    return compute_files_digest(_find_files(folder), memo)


def _open_release(folder: Path, few_sample: bool) -> Release:
    """Open the whole release, because PersonaChat has no few-sample setting."""
    reader = _ReleaseReader(folder)
    return Release(
        location=_find_release(folder),
        revision=_compute_revision(folder, None),
        tasks=(REPLY.name,),
        dialogues={split: len(reader.dialogues[split]) for split in SPLITS},
        instances=reader.iterate_instances,
        turns=list(reader.iterate_turn_lengths()),
        source_kind="folder",
    )


PERSONACHAT = Dataset(
    name=NAME,
    cards=CARDS,
    reader=Reader(
        version=1,
        find=_find_release,
        revision=_compute_revision,
        open=_open_release,
        splits={REPLY.name: SPLITS},
    ),
    sizes={REPLY.name: TaskSize(5_460, 1_170, 1_170, 75)},
    sizes_from="validation set of ConvAI2, split at random into train, dev and test",
)
