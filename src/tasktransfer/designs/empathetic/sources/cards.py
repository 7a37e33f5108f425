"""Task cards of the study's data."""

from __future__ import annotations

from tasktransfer.tasks.card import MetricSpec, Prompt, Task, TaskKind, Wording

ED, DAILY, PAIRS = "EmpatheticDialogues", "DailyDialogReplies", "ReplyPairs"
TAGS, NEWSGROUPS = "GoEmotions", "Newsgroups"

TURN = " <SOC> "
"""Separator between the utterances of a context, as in the paper's code."""
WINDOW = 4
"""Maximum number of previous utterances in a context (section 4)."""

LABELS = (
    "surprised", "excited", "annoyed", "proud", "angry", "sad", "grateful", "lonely", "impressed",
    "afraid", "disgusted", "confident", "terrified", "hopeful", "anxious", "joyful", "disappointed",
    "prepared", "guilty", "furious", "nostalgic", "jealous", "anticipating", "embarrassed",
    "content", "devastated", "sentimental", "caring", "trusting", "ashamed", "apprehensive",
    "faithful",
)  # fmt: skip
"""The 32 emotions in the order of Table 7, which is the official numbering from 1 to 32."""

TAG_LABELS = (
    "admiration", "amusement", "anger", "annoyance", "approval", "caring", "confusion", "curiosity",
    "desire", "disappointment", "disapproval", "disgust", "embarrassment", "excitement", "fear",
    "gratitude", "grief", "joy", "love", "nervousness", "optimism", "pride", "realization",
    "relief", "remorse", "sadness", "surprise",
)  # fmt: skip
"""GoEmotions' 27 emotions, in the order of their numbers from 1."""

NEWSGROUP_LABELS = (
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles",
    "rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med",
    "sci.space", "soc.religion.christian", "talk.politics.guns", "talk.politics.mideast",
    "talk.politics.misc", "talk.religion.misc",
)  # fmt: skip

_PAPER = "Rashkin et al. 2018, I Know the Feeling: Learning to Converse with Empathy"
_LICENCE = "CC BY-NC 4.0"
MOST_TOKENS = 100
"""Maximum number of tokens of a context, and of a reply (section 4)."""


_LISTENER = "Listener:"
REPLY_WORDINGS = (
    Wording(
        "A speaker tells a listener about a personal experience. Write the listener's next reply: "
        "one or two short sentences that show empathy.",
        answer=_LISTENER,
    ),
    Wording("Continue the dialogue with the listener's next utterance.", answer=_LISTENER),
)
"""Templates of prompted repliers: the first asks for empathy, the second does not."""


def make_reply_task(
    name: str,
    short: str,
    dataset: str,
    what: str,
    citation: str,
    licence: str,
    wordings: tuple[Wording, ...] = (),
) -> Task:
    """Return a card whose instances are contexts with the utterance that follows.

    Both are truncated at their end, as in the paper's code.
    """
    prompt = Prompt("", MOST_TOKENS)
    metrics = (MetricSpec("bleu"),)
    return Task(
        name, short, dataset, "reply", (), metrics, "", prompt, what, citation, licence,
        wordings=wordings, keeps="beginning",
    )  # fmt: skip


def make_label_task(
    name: str,
    short: str,
    dataset: str,
    labels: tuple[str, ...],
    what: str,
    citation: str,
    licence: str,
    *,
    kind: TaskKind = "dialogue_classification",
    by_head: bool = False,
) -> Task:
    """Return a card whose instances are texts with one label each."""
    return Task(
        name, short, dataset, kind, labels, (MetricSpec("accuracy"),), "",
        Prompt("label:", 16), what, citation, licence, keeps="beginning", by_head=by_head,
    )  # fmt: skip


NEXT = make_reply_task(
    "next_utterance", "NEXT", ED, "The next utterance of either side.", _PAPER, _LICENCE
)
REPLY = make_reply_task(
    "listener_reply", "REPLY", ED, "The listener's next reply.", _PAPER, _LICENCE, REPLY_WORDINGS
)
EMOTION_OF_CONTEXT = make_label_task(
    "emotion_of_context", "CEMO", ED, LABELS, "The emotion of a dialogue from its context.",
    _PAPER, _LICENCE, by_head=True,
)  # fmt: skip
EMOTION = make_label_task(
    "emotion", "EMO", ED, LABELS, "The emotion of a situation.", _PAPER, _LICENCE
)
EMOTION_CUT = make_label_task(
    "emotion_cut", "ECUT", ED, LABELS, "The emotion of a situation that does not name it.",
    _PAPER, _LICENCE,
)  # fmt: skip
ED_CARDS = (NEXT, REPLY, EMOTION_OF_CONTEXT, EMOTION, EMOTION_CUT)

DAILY_NEXT = make_reply_task(
    "daily_next_utterance", "DNEXT", DAILY, "The next utterance of an everyday dialogue.",
    "Li et al. 2017, DailyDialog", "CC BY-NC-SA 4.0",
)  # fmt: skip
PAIR = make_reply_task(
    "reply_pair", "PAIR", PAIRS, "The reply of a pair from a user's folder.",
    "the user's own, read since 2024", "as the user's files",
)  # fmt: skip
TAG = make_label_task(
    "emotion_tag", "TAG", TAGS, TAG_LABELS, "The emotion tag of a comment.",
    "Demszky et al. 2020, GoEmotions", "Apache-2.0",
)  # fmt: skip
NEWSGROUP = make_label_task(
    "newsgroup", "NEWS", NEWSGROUPS, NEWSGROUP_LABELS, "The newsgroup of a posting.",
    "Lang 1995, NewsWeeder", "none stated",
)  # fmt: skip
