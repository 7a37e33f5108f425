"""Prompt templates of DailyDialog's tasks for language models without fine-tuning, two per task.

This project wrote them, because the paper does not prompt models.
"""

from __future__ import annotations

from tasktransfer.tasks.card import Wording

EMOTIONS = (
    Wording(
        "Read the dialogue and say which emotion its last utterance expresses.",
        "Which emotion does the last utterance express: {labels}?",
        labels={"neutral": "no emotion"},
    ),
    Wording(
        "Label the last utterance of the dialogue with one of these feelings: {labels}.",
        answer="The last speaker's feeling is",
    ),
)

ACTS = (
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
)

TOPICS = (
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
)

CAUSE_SPANS = (
    Wording(
        "Copy the words of the evidence utterance that cause the emotion. Where it has none, "
        "write: Impossible answer.",
        "{question}",
    ),
    Wording(
        "Each question names a target utterance, an evidence utterance and an emotion. Quote the "
        "part of the evidence utterance that explains the emotion, or write Impossible answer if "
        "it does not explain it.",
        "{question}",
        answer="Quote:",
    ),
)

CAUSES = (
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
)

INFERENCE = (
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
)

REASONING_SPANS = (
    Wording("Answer the question with words copied from the dialogue.", "{question}"),
    Wording(
        "Read the dialogue. Quote the part of it that answers the question.",
        "Question: {question}",
        answer="Quote:",
    ),
)

REASONING_CHOICE = (
    Wording(
        "Choose the option that answers the question about the dialogue.",
        "{question}\n{options}",
    ),
    Wording("Answer the question about the dialogue.", "Question: {question}"),
)

RELATIONS = (
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
)

RESPONSES = (
    Wording(
        "Choose the option that is the best next utterance of the dialogue.",
        "{options}",
        answer="The next utterance is:",
    ),
    Wording("Continue the dialogue with its next utterance.", answer="Next utterance:"),
)
