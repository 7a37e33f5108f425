"""Names, words and sentence frames of the Friends-like dataset, as data.

The benchmark fixes the six first names, which are labels. All utterances are invented. Words of
different classes of a list occur in the same frames, so that only labels, not language modelling,
distinguish the classes. A test checks that the lists share no word.
"""

from __future__ import annotations

from tasktransfer.datasets.feta.tiny_world import MoodWords

FRIENDS = ("Chandler", "Joey", "Monica", "Phoebe", "Rachel", "Ross")
PASSERS_BY = ("Tilda", "Oskar", "Bruno", "Greta", "Nadia", "Milo")

MOOD_WORDS = {
    "bright": MoodWords(
        common=("teapot", "banjo", "scooter", "tulip"),
        rare=("cushion", "pretzel", "marble", "raft"),
    ),
    "low": MoodWords(
        common=("sandal", "trophy", "locket", "zipper"),
        rare=("thimble", "pumpkin", "stapler", "doormat"),
    ),
    "fierce": MoodWords(
        common=("cabinet", "feather", "crayon", "tripod"),
        rare=("spatula", "necklace", "sponge", "postcard"),
    ),
    "odd": MoodWords(
        common=("pinecone", "toaster", "harness", "blender"),
        rare=("cork", "globe", "napkin", "walnut"),
    ),
}

MELD_OF = {"bright": "joy", "low": "sadness", "fierce": "anger", "odd": "fear"}
EMORY_OF = {"bright": "joyful", "low": "sad", "fierce": "mad", "odd": "scared"}

NEUTRAL_OPENERS = (
    "Hi, come on in.",
    "Well, there you are.",
    "Hello to all of you.",
    "So what is new?",
)
MOOD_FRAMES = (
    "I found the {word} here.",
    "Did you see that {word} yet?",
    "They kept the {word} upstairs.",
    "It was the {word} again.",
    "Now the {word} is back.",
    "Take this {word} with you.",
)

NOTE_FRAME = "[ {first} and {second} walk by. ]"
PURCHASES = ("jacket", "guitar", "hamster", "sandwich", "sweater", "bookcase", "sofa", "turkey")
PURCHASE_FRAMES = ("Today I bought the {object}.", "At last I bought the {object}.")

NICKNAMES = {
    "chandler": ("captain", "sparrow", "wizard"),
    "joey": ("tiger", "rocket", "baker"),
    "monica": ("duchess", "badger", "pilot"),
    "phoebe": ("comet", "dolphin", "poet"),
    "rachel": ("peach", "falcon", "sailor"),
    "ross": ("turtle", "pirate", "monk"),
    "other": ("stranger", "visitor", "mailman"),
}
NICKNAME_FRAMES = (
    "So that {kin} met our {name}.",
    "Even the {name} likes this {kin}.",
    "Well, the {name} saw the {kin}.",
    "Then this {kin} called a {name}.",
)

KINSHIP = {
    "roommate": ("per:roommate", "per:friends"),
    "flatmate": ("per:roommate", "per:friends"),
    "brother": ("per:siblings",),
    "twin": ("per:siblings",),
    "husband": ("per:spouse",),
    "wife": ("per:spouse",),
}
KINSHIP_FRAMES = ("{head} is the {kin} of {tail}.", "I hear {head} is {kin} of {tail}.")

TRAITS = {
    "aggreeable": ("gentle", "generous"),
    "conscientious": ("careful", "punctual"),
    "extroverted": ("loud", "chatty"),
    "open": ("curious", "dreamy"),
    "neurotic": ("nervous", "worried"),
}
"""Trait, in the release's order and spelling → its words."""
TRAIT_FRAMES = {
    1: ("I am so {first} now.", "They call me {first} here."),
    2: ("I am {first} and {second} now.", "They call me {first} and {second}."),
}
PORTRAIT_REPLIES = ("Yes, we all know that.", "Tell me more of it.", "That makes two of us.")
