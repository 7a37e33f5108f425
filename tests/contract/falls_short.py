"""Where designs fall short of the contract: the one list, and how tests are told of it.

An entry is mended by removing it: a case that passes and stands here fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch

import pytest

FALLS_SHORT: Mapping[str, Mapping[str, str]] = {
    "precisions": {
        "empathetic-*": "empathetic never compares what precision records are of",
        "panel-*": "panel never compares what precision records are of",
        "probes-*": "probes never compares what precision records are of",
        "toy-*": "the toy design reads records by itself and compares nothing",
    },
    "synthetic beside real": {
        "empathetic-*": "empathetic asks the config alone whether dialogues are generated",
        "panel-*": "panel asks the config alone whether dialogues are generated",
        "probes-*": "probes takes one generated record for a generated study",
        "toy-*": "the toy design asks the config alone whether dialogues are generated",
    },
    "of another stage": {
        "empathetic-*": "empathetic looks at no stage that has its evaluations",
        "panel-*": "panel lists such a stage by its path, without a reason",
        "probes-*": "probes looks at no stage that has its fits",
        "toy-*": "the toy design looks at no stage",
    },
    "damage": {
        "empathetic-evaluation-*": "empathetic says that a damaged evaluation left no record",
        "empathetic-*": "empathetic looks at no stage, fit or data that has its evaluations",
        "panel-*": "panel says that a damaged node left no record",
        "probes-fit-*": "probes says that a damaged fit is missing",
        "probes-*": "probes looks at no stage or data that has its fits",
        "toy-*": "the toy design looks at no node but its evaluations, at these without checks",
    },
    "missing": {
        "empathetic-*": "empathetic lists the path of an evaluation that is missing, and no state",
        "panel-*": "panel lists the path of a node that is missing, and no state",
        "probes-*": "probes lists the path of a fit that is missing, and no state",
        "toy-*": "the toy design lists nothing: it ends at the first record that is missing",
    },
    "cuts in tables": {
        "panel": "panel's tables never say what was cut",
        "toy": "the toy design's table does not say what was cut",
    },
    "cuts in captions": {"panel": "panel's captions never say what was cut"},
    "stand-ins in tables": {"toy": "the toy design's table does not say what stands in"},
    "generated": {
        "empathetic": "empathetic prints Table 2 beside a generated world",
        "panel": "panel prints averages of Tables III to VIII beside a generated world",
        "probes": "probes prints Tables 3 to 9 beside a generated world",
    },
    "same members": {
        "transfer-real": "transfer prints Table 2's averages beside those over other pairs, with ‡",
        "panel-real": "panel prints the averages of whole domains beside those of a part",
    },
    "pack and merge": {
        "empathetic": "pack takes trainings alone: evaluations are missing elsewhere",
        "panel": "pack takes trainings alone: data and evaluations are missing elsewhere",
        "probes": "pack takes trainings alone: fits are missing elsewhere",
        "toy": "pack takes trainings alone: evaluations are missing elsewhere",
    },
    "explain a cell": {
        "empathetic": "empathetic explains nodes, and no cells",
        "panel": "panel explains nodes, and no cells",
        "probes": "probes explains nodes, and no cells",
        "toy": "the toy design explains nodes, and no cells",
    },
}
"""Clause → case, or a pattern of cases (design, then what the clause tells apart) → which design
does what wrong."""


def cases(clause: str, names: Iterable[tuple[str, ...]]) -> pytest.MarkDecorator:
    """The parametrisation of a clause's test: ``design`` and whatever it tells apart (``what``).

    Args:
        clause: a key of ``FALLS_SHORT``, or a clause that all designs keep.
        names: the design, and what else there is of a case.
    """
    several = [*names]
    listed = FALLS_SHORT.get(clause, {})
    ids = ["-".join(name) for name in several]
    for pattern in listed:
        assert any(fnmatch(each, pattern) for each in ids), f"{clause}: no case is {pattern}"
    columns = ("design", "what", "how")[: max(map(len, several))]
    return pytest.mark.parametrize(
        columns,
        [
            pytest.param(*name, id=i, marks=_marks(listed, i))
            for name, i in zip(several, ids, strict=True)
        ],
    )


def _marks(listed: Mapping[str, str], name: str) -> list[pytest.MarkDecorator]:
    reasons = [reason for pattern, reason in listed.items() if fnmatch(name, pattern)]
    return [pytest.mark.xfail(strict=True, raises=AssertionError, reason=r) for r in reasons[:1]]
