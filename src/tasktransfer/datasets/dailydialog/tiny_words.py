"""Words and sentence frames of the DailyDialog-like dataset, as data.

Words of different classes of a list occur in the same frames, so that only labels, not language
modelling, distinguish the classes. A test checks that the lists share no word.
"""

from __future__ import annotations

from tasktransfer.datasets.feta.tiny_world import MoodWords

MOOD_WORDS = {
    "bright": MoodWords(
        common=("kite", "lantern", "violin", "garden"), rare=("ribbon", "canoe", "puppet", "melon")
    ),
    "low": MoodWords(
        common=("umbrella", "letter", "bridge", "candle"),
        rare=("pillow", "ticket", "anchor", "basket"),
    ),
    "fierce": MoodWords(
        common=("hammer", "engine", "ladder", "whistle"),
        rare=("bucket", "saddle", "trumpet", "curtain"),
    ),
    "odd": MoodWords(
        common=("mirror", "wallet", "parrot", "compass"),
        rare=("magnet", "helmet", "barrel", "carpet"),
    ),
}

EMOTION_OF = {"bright": "happiness", "low": "sadness", "fierce": "anger", "odd": "surprise"}
TOPIC_OF = {"bright": "Tourism", "low": "Health", "fierce": "Work", "odd": "School Life"}

NEUTRAL_OPENERS = (
    "Good morning to you.",
    "Well, here we are.",
    "Nice to meet you again.",
    "How are things with you?",
)
MOOD_FRAMES = (
    "I saw the {word} today.",
    "Look at that {word} there.",
    "They talked about the {word}.",
    "So where is the {word} now?",
    "Here is your {word} again.",
    "You know that {word} well.",
)

ACT_WORDS = {
    "inform": ("plainly", "mostly", "nearly"),
    "question": ("perhaps", "somehow", "maybe"),
    "directive": ("quickly", "quietly", "firmly"),
    "commissive": ("gladly", "surely", "truly"),
}
ACT_FRAMES = (
    "We {word} leave at noon.",
    "They {word} stay at home.",
    "You {word} wait for us.",
    "I {word} walk to town.",
    "She {word} comes with us.",
)

COURTESY_WORDS = ("thanks", "welcome", "pleasure", "cheers", "kindly", "bless")
FITTING_FRAMES = (
    "Oh, {word} to you all.",
    "Then {word} from both of us.",
    "Well, {word} once more.",
)
UNFITTING_FRAMES = (
    "The {thing} fell on the floor.",
    "Nobody wants this {thing} here.",
    "That {thing} was never ours.",
    "Another {thing} is on sale.",
)
THINGS = ("pencil", "bicycle", "blanket", "shovel", "kettle", "drawer", "fountain", "jigsaw")

TROUBLE_VERBS = ("broke", "lost", "burned", "spilled", "cracked", "ruined")
CALM_VERBS = ("painted", "cleaned", "carried", "sold", "opened", "washed")
OBJECTS = ("lamp", "table", "clock", "radio", "window", "plate", "bottle", "camera")
EVENT_FRAMES = ("Someone {verb} the {object}.", "My cousin {verb} our {object}.")
EVENT_REPLIES = ("Yes, he {verb} that {object}.", "So they just {verb} this {object}.")
REACTION_EMOTIONS = ("fear", "disgust")
REACTIONS = ("That is really something.", "I can not believe this.", "What a day this is.")

HEADS = ("storm", "music", "coffee", "river", "novel", "winter", "horse", "train")
RELATIONS = ("causes", "at location", "used for", "has property")
TAILS = {
    "causes": ("smoke", "noise", "hunger", "laughter", "tears"),
    "at location": ("kitchen", "harbor", "market", "attic", "forest"),
    "used for": ("painting", "cooking", "sewing", "hiking", "fishing"),
    "has property": ("heavy", "sticky", "hollow", "narrow", "salty"),
}
RELATION_FRAMES = {
    "causes": "The {head} brings {tail} again.",
    "at location": "The {head} is near the {tail}.",
    "used for": "The {head} helps with {tail}.",
    "has property": "The {head} feels rather {tail}.",
}
QUESTIONS = {
    "causes": "What does '{head}' cause?",
    "at location": "Where is '{head}' located?",
    "used for": "What is '{head}' used for?",
    "has property": "What property does '{head}' have?",
}
