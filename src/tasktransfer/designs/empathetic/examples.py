"""Example replies on the page of a study, as in Tables 1, 6 and 8 of the paper.

They need the study's own records and prepared dialogues. A page that is computed from a pack
therefore has no examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from tasktransfer.designs.empathetic.human import GOLD
from tasktransfer.designs.empathetic.replies import (
    AnsweredContext,
    list_models_with_replies,
    name_speakers,
    read_answered_contexts,
    sample_contexts,
)
from tasktransfer.errors import DataError, RecordError
from tasktransfer.present.columns import make_long_text_column, make_text_column
from tasktransfer.present.declared import Block
from tasktransfer.present.html import build_table
from tasktransfer.results.frames import Frames

MOST = 3
"""Maximum number of contexts on the page."""
COLUMNS = (
    make_text_column("instance", "Instance"),
    make_text_column("by", "By"),
    make_long_text_column("text", "Text"),
)


def build_blocks(frames: Frames) -> Mapping[str, Sequence[Block]]:
    """Map section to blocks: a collapsed table with sampled contexts and all models' replies.

    There is no block if the dialogues are not prepared, or if no record contains replies.
    """
    models = list_models_with_replies(frames.study)
    try:
        contexts = read_answered_contexts(frames.study, models)
    except (DataError, RecordError):
        return {}
    if not contexts or models == [GOLD]:
        return {}
    sampled = sample_contexts(contexts, min(MOST, len(contexts)), seed=0)
    table = build_table(
        "example_replies",
        "Example replies",
        "Sampled test contexts, the reply in the corpus (Gold), and the replies of each method's "
        "first seed. Retrieved replies (ret) come from the first candidate pool. The page contains "
        "these texts, so share it only as the corpus's licence allows.",
        pd.DataFrame([row for context in sampled for row in _list_rows(context)]),
        COLUMNS,
        keys=2,
        folded=True,
    )
    return {"results": [Block(table=table)]}


def _list_rows(context: AnsweredContext) -> Iterator[dict[str, str]]:
    """Yield the utterances and replies; only the first row has the instance."""
    lines = [*name_speakers(context), *context.replies.items()]
    for number, (name, text) in enumerate(lines):
        yield {"instance": "" if number else context.instance, "by": name, "text": text}
