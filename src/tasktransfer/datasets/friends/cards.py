"""Cards of the seven tasks on Friends, television scenes with recurring speakers (FETA, Table 1).

Labels and metric settings are those of the release's metadata, which a fidelity test checks.
Prompts are from FETA, Tables 4 and 5. Queries with two fields use " ; " instead of the toolkit's
separator token, because a card does not depend on a tokenizer. The wordings for language models
without fine-tuning, two per task, are this project's, because the paper does not prompt models.
"""

from __future__ import annotations

from tasktransfer.tasks.card import MetricSpec, Prompt, Task, ToolkitForms, Wording

_DATASET = "Friends"

_MINING_LICENCE = (
    "annotations (emorynlp): Apache-2.0; transcripts: no copyright claimed by emorynlp"
)

_MOST_WORDS = 512

_MICRO_F1 = MetricSpec("f1", "micro")
_MACRO_F1 = MetricSpec("f1", "macro")
_WEIGHTED_F1 = MetricSpec("f1", "weighted")

EMORY_EMOTION_RECOGNITION = Task(
    name="emory_emotion_recognition",
    short="EER",
    dataset=_DATASET,
    kind="utterance_classification",
    labels=("joyful", "mad", "neutral", "peaceful", "powerful", "sad", "scared"),
    metrics=(_MICRO_F1, _WEIGHTED_F1),
    paper_metrics=("micro_f1", "weighted_f1"),
    query="",
    prompt=Prompt("emotion:", max_answer_tokens=10),
    toolkit=ToolkitForms(most_words=_MOST_WORDS, encoder="{context}", answer_tokens=5),
    description="Predict which of the seven emotions of EmoryNLP the target utterance expresses.",
    citation=(
        "Zahiri and Choi 2018, Emotion Detection on TV Show Transcripts with Sequence-based "
        "Convolutional Neural Networks, AAAI Workshop on Affective Content Analysis"
    ),
    licence=_MINING_LICENCE,
    wordings=(
        Wording(
            "Read the scene and say how the speaker of its last utterance feels.",
            "How does the last speaker feel: {labels}?",
        ),
        Wording(
            "Label the last utterance of the scene with one of these feelings: {labels}.",
            answer="The last speaker's feeling is",
            labels={
                "joyful": "joy",
                "mad": "anger",
                "neutral": "nothing special",
                "peaceful": "peace",
                "powerful": "power",
                "sad": "sadness",
                "scared": "fear",
            },
        ),
    ),
)

READING_COMPREHENSION = Task(
    name="reading_comprehension",
    short="RC",
    dataset=_DATASET,
    kind="span",
    labels=(),
    metrics=(MetricSpec("exact_match"),),
    # The paper reports accuracy. An answer is correct if it matches the entity exactly.
    paper_metrics=("exact_match",),
    query="{entities} ; {query}",
    prompt=Prompt(
        "question: {query} Out of {entities}, [PLACEHOLDER] is",
        max_answer_tokens=20,
    ),
    every_mention=True,
    recipes={"encoder": 4, "decoder": 4},
    toolkit=ToolkitForms(
        most_words=_MOST_WORDS,
        encoder="{entities} {sep} {query} {sep} {context}",
        answer_tokens=20,
        answer_in="entities",
        after_prompt=" ",
    ),
    description=(
        "Predict which entity of the scene is replaced by the mask in a sentence of the plot "
        "summary."
    ),
    citation=(
        "Ma et al. 2018, Challenging Reading Comprehension on Daily Conversation: Passage "
        "Completion on Multiparty Dialog, NAACL"
    ),
    licence="annotations (emorynlp/reading-comprehension): Apache-2.0",
    wordings=(
        Wording(
            "A sentence about the scene has a name replaced by [PLACEHOLDER]. Say whose name it "
            "is.",
            "{query}\nWho is [PLACEHOLDER]: {entities}?",
        ),
        Wording(
            "Fill in the missing name of each sentence about a scene. The names are given.",
            "Names: {entities}\nSentence: {query}",
            answer="[PLACEHOLDER] is",
        ),
    ),
)

CHARACTER_IDENTIFICATION = Task(
    name="character_identification",
    short="CI",
    dataset=_DATASET,
    kind="utterance_classification",
    labels=("chandler", "joey", "monica", "phoebe", "rachel", "ross", "other"),
    metrics=(_MICRO_F1, _MACRO_F1),
    paper_metrics=("micro_f1", "macro_f1"),
    query="Who does '{mention}' refer to in the phrase '{phrase}'?",
    prompt=Prompt(
        "Out of {labels}, '{mention}' in the phrase '{phrase}' refers to",
        max_answer_tokens=10,
    ),
    toolkit=ToolkitForms(
        most_words=_MOST_WORDS,
        encoder="Who does '{mention}' refer to in the phrase '{phrase}'? {sep} {context}",
        answer_tokens=5,
        turns_reversed=True,
    ),
    description=(
        "Predict which main character, or whether another person, is meant by a mention in the "
        "utterance."
    ),
    citation=(
        "Zhou and Choi 2018, They Exist! Introducing Plural Mentions to Coreference Resolution "
        "and Entity Linking, COLING"
    ),
    licence=_MINING_LICENCE,
    wordings=(
        Wording(
            "Read the scene and say who is meant by a word of its last utterance.",
            "Who is '{mention}' in '{phrase}': {labels}?",
            labels={"other": "someone else"},
        ),
        Wording(
            "Resolve mentions of people in scenes to one of: {labels}.",
            answer="In '{phrase}', '{mention}' refers to",
            labels={"other": "another person"},
        ),
    ),
)

QUESTION_ANSWERING = Task(
    name="question_answering",
    short="QA",
    dataset=_DATASET,
    kind="span",
    labels=(),
    metrics=(
        MetricSpec("exact_match"),
        MetricSpec("token_f1", "macro"),
        MetricSpec("token_f1", "micro"),
    ),
    paper_metrics=("exact_match", "macro_token_f1"),
    query="{question}",
    prompt=Prompt("question: {question} answer:", max_answer_tokens=64),
    keeps="beginning",
    recipes={"encoder": 4, "decoder": 4, "encoder_decoder": 4},
    toolkit=ToolkitForms(
        most_words=_MOST_WORDS,
        encoder="{question} {context}",
        answer_tokens=64,
        lists_answers=True,
    ),
    description="Extract the span of the dialogue, or the speaker, that answers a question.",
    citation=(
        "Yang and Choi 2019, FriendsQA: Open-Domain Question Answering on TV Show Transcripts, "
        "SIGDIAL"
    ),
    licence="annotations (emorynlp/FriendsQA): Apache-2.0",
    wordings=(
        Wording("Answer the question with words copied from the scene.", "{question}"),
        Wording(
            "Read the scene. Quote the part of it, or name the speaker, that answers the question.",
            "Question: {question}",
            answer="Quote:",
        ),
    ),
)

PERSONALITY_DETECTION = Task(
    name="personality_detection",
    short="PD",
    dataset=_DATASET,
    kind="multi_output",
    labels=("0", "1"),
    # The release and the challenge spell it "aggreeable", also in instance ids.
    outputs=("aggreeable", "conscientious", "extroverted", "open", "neurotic"),
    metrics=(MetricSpec("accuracy"),),
    paper_metrics=("accuracy",),
    query="{speaker}",
    prompt=Prompt(
        "{speaker} is {trait}:",
        max_answer_tokens=4,
        label_words={"0": "false", "1": "true"},
    ),
    toolkit=ToolkitForms(
        most_words=_MOST_WORDS, encoder="{speaker} {sep} {context}", answer_tokens=1
    ),
    description="Predict whether a speaker shows each of five personality traits.",
    citation=(
        "Jiang et al. 2020, Automatic Text-based Personality Recognition on Monologues and "
        "Multiparty Dialogues Using Attentive Networks and Contextual Embeddings, AAAI"
    ),
    licence="annotations (emorynlp/personality-detection): none stated",
    wordings=(
        Wording(
            "Read the scene and judge the personality of a speaker.",
            "Is {speaker} {trait} in this scene: yes or no?",
            labels={"0": "no", "1": "yes"},
            traits={
                "aggreeable": "kind and cooperative",
                "conscientious": "careful and dependable",
                "extroverted": "outgoing",
                "open": "open to new experiences",
                "neurotic": "easily upset",
            },
        ),
        Wording(
            "Decide whether each statement about a speaker of the scene is true or false.",
            "Statement: {speaker} is {trait}.",
            answer="The statement is",
            labels={"0": "false", "1": "true"},
            traits={"aggreeable": "agreeable"},
        ),
    ),
)

_RELATION_WORDS = {
    "per:positive_impression": "positive impression",
    "per:negative_impression": "negative impression",
    "per:acquaintance": "acquaintance",
    "per:alumni": "alumni",
    "per:boss": "boss",
    "per:subordinate": "subordinate",
    "per:client": "client",
    "per:dates": "dates",
    "per:friends": "friends",
    "per:girl/boyfriend": "girlfriend or boyfriend",
    "per:neighbor": "neighbor",
    "per:roommate": "roommate",
    "per:children": "children",
    "per:other_family": "other family",
    "per:parents": "parents",
    "per:siblings": "siblings",
    "per:spouse": "spouse",
    "per:place_of_residence": "place of residence",
    "per:place_of_birth": "place of birth",
    "per:visited_place": "visited place",
    "per:origin": "origin",
    "per:employee_or_member_of": "employee or member of",
    "per:schools_attended": "schools attended",
    "per:works": "works",
    "per:age": "age",
    "per:date_of_birth": "date of birth",
    "per:major": "major",
    "per:place_of_work": "place of work",
    "per:title": "title",
    "per:alternate_names": "alternate names",
    "per:pet": "pet",
    "gpe:residents_of_place": "residents of place",
    "gpe:visitors_of_place": "visitors of place",
    "gpe:births_in_place": "births in place",
    "org:employees_or_members": "employees or members",
    "org:students": "students",
    "unanswerable": "unanswerable",
}
"""Relation, in the release's order → verbalizer for text-to-text models."""

_UNSCORED_RELATIONS = (18, 29, 33, 35, 36)
"""Indices of the labels that the release's metric ignores: place_of_birth, alternate_names,
births_in_place, students and unanswerable."""

RELATION_EXTRACTION = Task(
    name="relation_extraction",
    short="RE",
    dataset=_DATASET,
    kind="multi_label",
    labels=tuple(_RELATION_WORDS),
    metrics=(
        MetricSpec(
            "multilabel_f1",
            "micro",
            label_indices=tuple(
                i for i in range(len(_RELATION_WORDS)) if i not in _UNSCORED_RELATIONS
            ),
        ),
    ),
    paper_metrics=("micro_multilabel_f1",),
    query="{head} ; {tail}",
    prompt=Prompt(
        "{head} has the following relations with {tail}:",
        max_answer_tokens=32,
        label_words=_RELATION_WORDS,
    ),
    recipes={"decoder": 4},
    toolkit=ToolkitForms(
        most_words=_MOST_WORDS,
        encoder="{head} {sep} {tail} {sep} {context}",
        answer_tokens=15,
        fallback="per:positive_impression",
    ),
    description="Predict which of 37 relations hold between two entities (one or several).",
    citation="Yu et al. 2020, Dialogue-Based Relation Extraction (DialogRE), ACL",
    licence="annotations (DialogRE): for non-commercial research purpose only",
    wordings=(
        Wording(
            "Read the scene and say how two people, places or things in it are related.",
            "What is {tail} to {head}: {labels}?",
        ),
        Wording(
            "Complete each sentence about the scene with a relation.",
            answer="The relation of {head} to {tail} is:",
        ),
    ),
)

MELD_EMOTION_RECOGNITION = Task(
    name="MELD_emotion_recognition",
    short="MER",
    dataset=_DATASET,
    kind="utterance_classification",
    labels=("anger", "disgust", "fear", "joy", "neutral", "sadness", "surprise"),
    metrics=(_MICRO_F1, _WEIGHTED_F1),
    paper_metrics=("micro_f1", "weighted_f1"),
    query="",
    prompt=Prompt("emotion:", max_answer_tokens=10),
    toolkit=ToolkitForms(most_words=_MOST_WORDS, encoder="{context}", answer_tokens=5),
    description="Predict which of the seven emotions of MELD the target utterance expresses.",
    citation=(
        "Poria et al. 2019, MELD: A Multimodal Multi-Party Dataset for Emotion Recognition in "
        "Conversations, ACL"
    ),
    licence="annotations (MELD): GPL-3.0",
    wordings=(
        Wording(
            "Read the scene and say which emotion its last utterance expresses.",
            "Which emotion does the last utterance express: {labels}?",
            labels={"neutral": "no emotion"},
        ),
        Wording(
            "Label the last utterance of the scene with one of these feelings: {labels}.",
            answer="The last speaker's feeling is",
        ),
    ),
)
