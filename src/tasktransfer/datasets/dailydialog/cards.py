"""Cards of the ten tasks on DailyDialog: two anonymous speakers, everyday talk (FETA, Table 1).

Labels and metric settings are those of the release's metadata, which a fidelity test checks.
Prompts are from FETA, Tables 4 and 5. Queries with two fields use " ; " instead of the toolkit's
separator token, because a card does not depend on a tokenizer. The wordings for language models
without fine-tuning, two per task, are this project's, because the paper does not prompt models.
"""

from __future__ import annotations

from tasktransfer.tasks.card import MetricSpec, Prompt, Task, ToolkitForms, Wording

_DATASET = "DailyDialog"

_DIALOGUES = "Li et al. 2017, DailyDialog: A Manually Labelled Multi-turn Dialogue Dataset, IJCNLP"
_RECCON = "Poria et al. 2021, Recognizing Emotion Cause in Conversations, Cognitive Computation"
_CIDER = (
    "Ghosal et al. 2021, CIDER: Commonsense Inference for Dialogue Explanation and Reasoning, "
    "SIGDIAL"
)
_PLUSPLUS = (
    "Sai et al. 2020, Improving Dialog Evaluation with a Multi-reference Adversarial Dataset and "
    "Large Scale Pretraining (DailyDialog++), TACL"
)

_DIALOGUES_LICENCE = "CC BY-NC-SA 4.0"
_RECCON_LICENCE = "annotations (RECCON): none stated; dialogues: CC BY-NC-SA 4.0"
_CIDER_LICENCE = "annotations (CIDER): MIT; dialogues: CC BY-NC-SA 4.0"
_PLUSPLUS_LICENCE = (
    "responses (DailyDialog++): none stated, its repository is MIT; dialogues: CC BY-NC-SA 4.0"
)

_ACCURACY = MetricSpec("accuracy")
_MICRO_F1 = MetricSpec("f1", "micro")
_MACRO_F1 = MetricSpec("f1", "macro")

EMOTION_RECOGNITION = Task(
    name="emotion_recognition",
    short="ER",
    dataset=_DATASET,
    kind="utterance_classification",
    labels=("anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise"),
    # Neutral (index 4) is most of the data, so micro-F1 ignores it. -1 is a generated answer that
    # is not a label.
    metrics=(MetricSpec("f1", "micro", label_indices=(-1, 0, 1, 2, 3, 5, 6)), _MACRO_F1),
    paper_metrics=("micro_f1", "macro_f1"),
    query="",
    prompt=Prompt("emotion:", max_answer_tokens=10),
    toolkit=ToolkitForms("{context}", 5),
    description="Predict which of seven emotions the target utterance expresses.",
    citation=_DIALOGUES,
    licence=_DIALOGUES_LICENCE,
    wordings=(
        Wording(
            "Read the dialogue and say which emotion its last utterance expresses.",
            "Which emotion does the last utterance express: {labels}?",
            labels={"neutral": "no emotion"},
        ),
        Wording(
            "Label the last utterance of the dialogue with one of these feelings: {labels}.",
            answer="The last speaker's feeling is",
        ),
    ),
)

DIALOGUE_ACT_CLASSIFICATION = Task(
    name="dialogue_act_classification",
    short="DAC",
    dataset=_DATASET,
    kind="utterance_classification",
    labels=("inform", "question", "directive", "commissive"),
    metrics=(_MICRO_F1, _MACRO_F1),
    paper_metrics=("micro_f1", "macro_f1"),
    query="",
    prompt=Prompt("dialogue act:", max_answer_tokens=10),
    toolkit=ToolkitForms("{context}", 5),
    description="Predict which of four dialogue acts the target utterance performs.",
    citation=_DIALOGUES,
    licence=_DIALOGUES_LICENCE,
    wordings=(
        Wording(
            "Read the dialogue and say what its last utterance does.",
            "What does the last utterance do: {labels}?",
            labels={
                "inform": "give information",
                "question": "ask a question",
                "directive": "request or suggest something",
                "commissive": "accept or promise something",
            },
        ),
        Wording(
            "Label the last utterance of the dialogue with its dialogue act: {labels}.",
            answer="Dialogue act:",
        ),
    ),
)

TOPIC_CLASSIFICATION = Task(
    name="topic_classification",
    short="TC",
    dataset=_DATASET,
    kind="dialogue_classification",
    labels=(
        "Ordinary Life",
        "School Life",
        "Culture & Education",
        "Attitude & Emotion",
        "Relationship",
        "Tourism",
        "Health",
        "Work",
        "Politics",
        "Finance",
    ),
    metrics=(_MICRO_F1, _MACRO_F1),
    paper_metrics=("micro_f1", "macro_f1"),
    query="",
    prompt=Prompt("topic:", max_answer_tokens=10),
    toolkit=ToolkitForms("{context}", 5),
    description="Predict which of ten topics the dialogue is about.",
    citation=_DIALOGUES,
    licence=_DIALOGUES_LICENCE,
    wordings=(
        Wording(
            "Read the dialogue and say what it is about.",
            "What is the dialogue about: {labels}?",
        ),
        Wording(
            "Label the dialogue with one of these topics: {labels}.",
            answer="Topic:",
            labels={
                "Ordinary Life": "everyday life",
                "School Life": "school",
                "Culture & Education": "culture and education",
                "Attitude & Emotion": "attitudes and emotions",
                "Relationship": "relationships",
                "Tourism": "travel",
                "Health": "health",
                "Work": "work",
                "Politics": "politics",
                "Finance": "money",
            },
        ),
    ),
)

CAUSAL_EMOTION_SPAN_EXTRACTION = Task(
    name="causal_emotion_span_extraction",
    short="CESE",
    dataset=_DATASET,
    kind="span",
    labels=(),
    metrics=(
        MetricSpec("exact_match", unanswerable_phrases=("impossible",), ignore_unanswerable=True),
        MetricSpec("token_f1", "macro", unanswerable_phrases=("impossible",)),
        MetricSpec("token_f1", "micro", unanswerable_phrases=("impossible",)),
    ),
    paper_metrics=("exact_match", "macro_token_f1"),
    query="{question}",
    prompt=Prompt("question: {question} answer:", max_answer_tokens=32),
    recipes={"encoder": 4, "decoder": 4},
    toolkit=ToolkitForms("{question} {context}", 32, zero_stays=True),
    description=(
        "Extract the span of the dialogue that causes the emotion of a target utterance, if this "
        "span is in the evidence utterance that the question specifies."
    ),
    citation=_RECCON,
    licence=_RECCON_LICENCE,
    wordings=(
        Wording(
            "Copy the words of the evidence utterance that cause the emotion. Where it has none, "
            "write: Impossible answer.",
            "{question}",
        ),
        Wording(
            "Each question names a target utterance, an evidence utterance and an emotion. Quote "
            "the part of the evidence utterance that explains the emotion, or write Impossible "
            "answer if it does not explain it.",
            "{question}",
            answer="Quote:",
        ),
    ),
)

CAUSAL_EMOTION_ENTAILMENT = Task(
    name="causal_emotion_entailment",
    short="CEE",
    dataset=_DATASET,
    kind="dialogue_classification",
    labels=("not entailed", "entailed"),
    metrics=(_MICRO_F1, _MACRO_F1),
    # The paper reports accuracy. The release lists micro-F1 over both labels, which is equal.
    paper_metrics=("micro_f1", "macro_f1"),
    query="{hypothesis}",
    prompt=Prompt("causal emotion entailment: {hypothesis}", max_answer_tokens=10),
    toolkit=ToolkitForms("{context} {hypothesis}", 5),
    description="Predict whether one utterance causes the emotion of another utterance.",
    citation=_RECCON,
    licence=_RECCON_LICENCE,
    wordings=(
        Wording(
            "Read the dialogue and say whether one utterance causes the emotion of another.",
            "{hypothesis} Is that right: yes or no?",
            labels={"entailed": "yes", "not entailed": "no"},
        ),
        Wording(
            "Decide whether each statement about the dialogue is true or false.",
            "Statement: {hypothesis}",
            answer="The statement is",
            labels={"entailed": "true", "not entailed": "false"},
        ),
    ),
)

DIALOGUE_NLI = Task(
    name="dialogue_nli",
    short="DNLI",
    dataset=_DATASET,
    kind="dialogue_classification",
    labels=("contradiction", "entailment"),
    metrics=(_MICRO_F1, _MACRO_F1),
    paper_metrics=("micro_f1", "macro_f1"),
    query="{hypothesis}",
    prompt=Prompt("entailment: {hypothesis}", max_answer_tokens=10),
    toolkit=ToolkitForms("{context} {hypothesis}", 5),
    description="Predict whether the dialogue entails a commonsense triple.",
    citation=_CIDER,
    licence=_CIDER_LICENCE,
    wordings=(
        Wording(
            "Read the dialogue and say whether a statement follows from it.",
            "Does it follow that: {hypothesis}? Say yes or no.",
            labels={"entailment": "yes", "contradiction": "no"},
        ),
        Wording(
            "Decide whether each statement agrees with the dialogue or contradicts it.",
            "Statement: {hypothesis}",
            answer="The statement",
            labels={"entailment": "agrees", "contradiction": "contradicts"},
        ),
    ),
)

DIALOGUE_REASONING_SPAN_EXTRACTION = Task(
    name="dialogue_reasoning_span_extraction",
    short="DRSE",
    dataset=_DATASET,
    kind="span",
    labels=(),
    metrics=(MetricSpec("exact_match"), MetricSpec("token_f1", "macro")),
    paper_metrics=("exact_match", "macro_token_f1"),
    query="{question}",
    prompt=Prompt("question: {question} answer:", max_answer_tokens=32),
    recipes={"encoder": 4, "decoder": 4},
    toolkit=ToolkitForms("{question} {context}", 32, zero_stays=True),
    description="Extract the span of the dialogue that answers a commonsense question.",
    citation=_CIDER,
    licence=_CIDER_LICENCE,
    wordings=(
        Wording("Answer the question with words copied from the dialogue.", "{question}"),
        Wording(
            "Read the dialogue. Quote the part of it that answers the question.",
            "Question: {question}",
            answer="Quote:",
        ),
    ),
)

DIALOGUE_REASONING_MULTIPLE_CHOICE_SPAN_SELECTION = Task(
    name="dialogue_reasoning_multiple_choice_span_selection",
    short="DRMC",
    dataset=_DATASET,
    kind="multiple_choice",
    labels=("0", "1", "2", "3"),
    metrics=(_ACCURACY,),
    paper_metrics=("accuracy",),
    query="{question} {option}",
    prompt=Prompt("question: {question} {options} The correct option is", max_answer_tokens=4),
    toolkit=ToolkitForms("{context} {sep} {question} {sep} {option}", 20),
    description="Select which of four spans answers a commonsense question.",
    citation=_CIDER,
    licence=_CIDER_LICENCE,
    wordings=(
        Wording(
            "Choose the option that answers the question about the dialogue.",
            "{question}\n{options}",
        ),
        Wording("Answer the question about the dialogue.", "Question: {question}"),
    ),
)

DIALOGUE_REASONING_COMMONSENSE_RELATION_PREDICTION = Task(
    name="dialogue_reasoning_commonsense_relation_prediction",
    short="CRE",
    dataset=_DATASET,
    kind="dialogue_classification",
    labels=(
        "None",
        "antonym",
        "at location",
        "capable of",
        "causes",
        "causes desire",
        "depends on",
        "desires",
        "discouraged by goal",
        "discourages",
        "distinct from",
        "doesn't have property",
        "doesn't imply",
        "happens before",
        "happens in",
        "happens simultaneously",
        "has a",
        "has prerequisite",
        "has property",
        "has subevent",
        "implies",
        "is a",
        "is not a",
        "located near",
        "manner of",
        "motivated by goal",
        "obstructed by",
        "similar to",
        "social rule",
        "suppresses desire",
        "synonym",
        "used for",
    ),
    metrics=(_ACCURACY, _MACRO_F1),
    paper_metrics=("accuracy", "macro_f1"),
    query="{head} ; {tail}",
    prompt=Prompt("The relation between '{head}' and '{tail}' is", max_answer_tokens=12),
    toolkit=ToolkitForms("{head} {sep} {tail} {sep} {context}", 5),
    description="Predict which commonsense relation holds between two spans, if any.",
    citation=_CIDER,
    licence=_CIDER_LICENCE,
    wordings=(
        Wording(
            "Say how two things in the dialogue are related, or none if they are not.",
            "How is '{head}' related to '{tail}': {labels}?",
            labels={"None": "none"},
        ),
        Wording(
            "Complete each sentence about the dialogue with a relation, or no relation.",
            answer="The relation from '{head}' to '{tail}' is",
            labels={"None": "no relation"},
        ),
    ),
)

ADVERSARIAL_RESPONSE_SELECTION = Task(
    name="adversarial_response_selection",
    short="ARS",
    dataset=_DATASET,
    kind="multiple_choice",
    labels=("0", "1", "2"),
    metrics=(_ACCURACY,),
    paper_metrics=("accuracy",),
    query="{question} {option}",
    prompt=Prompt("question: {question} {options} The correct option is", max_answer_tokens=4),
    toolkit=ToolkitForms("{context} {sep} {question} {sep} {option}", 1),
    description="Select which of three responses continues the dialogue best.",
    citation=_PLUSPLUS,
    licence=_PLUSPLUS_LICENCE,
    wordings=(
        Wording(
            "Choose the option that is the best next utterance of the dialogue.",
            "{options}",
            answer="The next utterance is:",
        ),
        Wording("Continue the dialogue with its next utterance.", answer="Next utterance:"),
    ),
)
