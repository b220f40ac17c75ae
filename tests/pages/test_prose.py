"""Text says what its run found, or the build stops."""

import json
import re

import numpy as np
import pytest

from mia_book.evidence import claims, results
from mia_book.pages import outputs, pages, prose
from mia_book.pages.parameters import find_root, validate
from mia_lib import metrics
from mia_lib.errors import MiaError
from mia_lib.metrics.interval import Interval

ROOT = find_root()
RECORD = {
    "notebook": "n",
    "preset": "smoke",
    "changed": {"a": "x|y"},
    "date": "2026-01-02T03:04:05+00:00",
    "seconds": 75.2,
    "peak_memory_mb": 300,
    "device": "2 CPU cores",
    "versions": {"python": "3.11.2"},
    "key": "0123",
}
LEAD = {"value": 0.0191, "low": 0.0142, "high": 0.0249, "spec": ".1%"}
TABLE = {
    "columns": ["n", "MALT", "MATT", "share"],
    "rows": [
        [
            400,
            {"text": "54.9 [54.5, 55.3]", "value": 54.9, "low": 54.5, "high": 55.3, "unit": "%"},
            {"value": 0.57, "low": 0.56, "high": 0.58},
            0.75749999999,
        ]
    ],
}


def verdict(mean, claim="C7"):
    return claims.judge(
        "bayes", claim, metrics.t_interval(mean + 0.01 * np.linspace(-1, 1, 9))
    ).record()


def run(preset="quick", unchanged=True, **more):
    given = {
        "parameters": {
            "seeds": 1000,
            "dataset": "fashion_mnist_20k",
            "sizes": [400, 1000],
            "tables": ["adult", "german_credit"],
        },
        "results": {
            "lead": LEAD,
            "models": {"value": 1200, "spec": ","},
            "name": {"text": "the first"},
        },
        "tables": {"bayes-table-1": TABLE},
        "claims": {"C7": verdict(0.1)},
    }
    return prose.Run("bayes", preset, unchanged, **{**given, **more})


def test_where_numbers_come_from_is_said_in_code_whatever_a_file_is_called():
    path = "/me/a`<img src=x>|b`.npz"
    text = outputs.render(
        "provenance.md",
        run=RECORD | {"changed": {"sets": [path]}},
        again=f"mia run n -p sets {path!r}",
    )
    lines = [line for line in text.splitlines() if "<img" in line]
    assert len(lines) == 2 and all(
        re.fullmatch(r"\| [\w ,]+ \| `` .*`<img src=x>\\\|b`.* `` \|", line) for line in lines
    )


def test_a_warning_on_a_page_names_no_path_of_a_machine():
    where = "/home/me/mia_lib/signals/curvature.py:12: UserWarning: h = 1e-08 is too small\n  warnings.warn(said)\n"
    text = [where, "/tmp/ipykernel_7/3.py:1: UserWarning: and another", "\nTraining: 3 of 4\n"]
    cell = {
        "cell_type": "code",
        "source": "",
        "outputs": [{"output_type": "stream", "name": "stderr", "text": text}],
    }
    told = prose.resolve_roles({"cells": [cell]}, run())["cells"][0]["outputs"][0]["text"]
    assert (
        told == "UserWarning: h = 1e-08 is too small\nUserWarning: and another\nTraining: 3 of 4\n"
    )


@pytest.mark.parametrize(
    "text, said",
    [
        (
            "over {ours}`one` targets, {ours}`one` % of {ours}`many` targets",
            "over 1 target, 1 % of 12 targets",
        ),
        ("{ours}`one`\ncopies and {ours}`one` queries", "1\ncopy and 1 query"),
        ("finds {ours}`low` % of the members", "finds (below resolution) of the members"),
    ],
)
def test_what_stands_behind_a_number_agrees_with_it(text, said):
    found = run(
        results={
            "one": {"value": 1, "spec": ""},
            "many": {"value": 12, "spec": ""},
            "low": {"text": f"({results.BELOW_RESOLUTION})"},
        }
    )
    assert prose.prose(text, "cell 1", found) == said and prose.BELOW == results.BELOW_RESOLUTION


@pytest.mark.parametrize(
    "asked, said",
    [
        ("{ours}`lead`", "1.9 % [1.4, 2.5]"),
        ("{ours}`lead:value`", "1.9 %"),
        ("{ours}`lead:.2f`", "0.02 [0.01, 0.02]"),
        ("{ours}`models`", "1,200"),
        ("{ours}`name`", "the first"),
        ("{ours}`bayes-table-1 | 400 | MALT`", "54.9 [54.5, 55.3]"),
        ("{ours}`bayes-table-1 | 400 | MATT`", "0.570 [0.560, 0.580]"),
        ("{ours}`bayes-table-1 | 400 | share`", "0.757"),
        ("{param}`seeds`", "1,000"),
        ("{param}`sizes`", "400, 1,000"),
        ("{param}`dataset:title`", "FashionMNIST"),
        ("{param}`tables:title`", "Adult, German credit"),
        ("no {term}`role` of ours", "no {term}`role` of ours"),
        ("{printed}`table1 | n = 400 | MATT | attack_accuracy`", "57.0"),
    ],
)
def test_a_role_is_answered_by_the_run(asked, said):
    assert prose.prose(f"Here {asked}.", "cell 1", run()) == f"Here {said}."
    ours = asked.replace("}`", "}`bayes ") if "{term}" not in asked else asked
    assert prose.prose(f"Here {ours}.", "index.md", None, {"bayes": run()}) == f"Here {said}."
    with_its_digits = "{printed}`calibration table4 | German Credit | HopSkipJump Cal. | auc`"
    assert prose.prose(with_its_digits, "index.md") == "0.640", (
        "the paper's numbers are there without a run"
    )


@pytest.mark.parametrize(
    "asked, words",
    [
        ("{ours}`leed`", "cell 1: there is no result 'leed'; the nearest is 'lead'"),
        ("{param}`seed`", "nearest is 'seeds'"),
        ("{ours}`bayes-table-1 | 40 | MALT`", "nearest is '400'"),
        ("{says}`C77`", "nearest is 'C7'"),
        ("{ours}`bayes-table-1 | 400 | MALD`", "column of bayes-table-1"),
        ("{printed}`table9 | n = 400`", "table9"),
        ("{printed}`table1 | n = 401`", "nearest is 'n = 400'"),
        ("{printed}`table1 | n = 400 | MATT`", "means 3 numbers"),
    ],
)
def test_a_name_that_does_not_exist_is_named_with_the_nearest(asked, words):
    with pytest.raises(MiaError, match=words):
        prose.prose(asked, "cell 1", run())


def test_a_chapters_answer_is_the_bold_text_under_its_title():
    for source, answer in (
        ("# A title\n\n**It depends\non *which*.**\n\n**More**", "It depends on *which*."),
        ("# A title\n\nText, and **bold**\n", ""),
    ):
        made = {"cells": [{"cell_type": "markdown", "source": source}], "metadata": {}}
        assert prose.run_of(made, ROOT).answer == answer
    found = run(answer="It is {ours}`lead:value`.")
    assert prose.prose("> {answer}`bayes`", "index.md", None, {"bayes": found}) == "> It is 1.9 %."
    with pytest.raises(MiaError, match=r"index.md: notebooks/bayes.py has no answer: bold text"):
        prose.prose("{answer}`bayes`", "index.md", None, {"bayes": run()})
    with pytest.raises(MiaError, match="no chapter 'bayse'; the nearest is 'bayes'"):
        prose.prose("{tally}`bayse`", "index.md", None, {"bayes": run()})


def test_a_tally_counts_verdicts_as_the_claims_do_and_a_sentence_follows_its_verdict():
    found = run(
        claims={
            one: verdict(mean, one)
            for one, mean in (("C7", 0.1), ("C6", 0.1), ("C8", -0.1), ("C16", 0.0))
        }
    )
    told = prose.prose("{tally}`bayes`", "index.md", None, {"bayes": found})
    plain = re.sub(r"\[([^\]]+)\]\{[^}]+\}", r"\1", told.replace("} [", "}, ["))
    assert plain.split("\\\n") == claims.tally(found.claims.values()).removesuffix(".").split(". ")
    for mean, words in (
        (0.1, "So it is here"),
        (-0.1, "the other way round"),
        (0.0, "does not decide it"),
    ):
        text = prose.prose("{says}`C7`", "cell", run(claims={"C7": verdict(mean)}))
        assert words in text
        assert verdict(mean)["brief"] in text
        assert claims.claims("bayes")["C7"]["text"] in text


def test_a_chapters_figure_stands_on_another_page_with_the_chapters_words_for_it():
    runs = {"bayes": run(figures={"bayes-idea": "A scatter of dots, {ours}`lead:value` apart."})}
    figure = "Before.\n\n:::{shown} bayes-idea\nDots, {ours}`bayes lead:value`.\n:::\n\nAfter."
    assert prose.prose(figure, "findings.md", runs=runs) == (
        "Before.\n\n:::{figure} /book/_figures/bayes-idea.png\n:alt: A scatter of dots, 1.9 % apart.\n:width: 100%\n\n"
        "Dots, 1.9 %.\n:::\n\nAfter."
    )


FINDING = "Before.\n\n:::{finding}\n:claims: C7 reproduced\nIt leads by {ours}`lead`.\n:::\n\n## After\n\n:::{note}\nx\n:::\n"


def test_a_finding_stands_where_the_published_run_has_the_verdict_that_it_was_written_for():
    text = prose.prose(FINDING, "bayes.py, cell 3", run("published"))
    assert "It leads by 1.9 %" in text and "## After\n\n:::{note}" in text
    assert '<a href="#claim-C7">C7</a>' in text and "verdict-reproduced" in text
    for finding, found, said in (
        (
            FINDING,
            run("published", claims={"C7": verdict(-0.1)}),
            "written for C7 reproduced, and it is contradicted now",
        ),
        (FINDING.replace("C7 r", "C70 r"), run("published"), "no claim 'C70'; the nearest is 'C7'"),
        (FINDING, None, "that no run belongs to"),
        (
            FINDING.replace(":claims: C7 reproduced\n", ""),
            run("published"),
            "a finding begins with the claims",
        ),
    ):
        with pytest.raises(MiaError, match=f"^bayes.py, cell 3: .*{said}"):
            prose.prose(finding, "bayes.py, cell 3", found)
    # another run shows what became of its claims
    for preset, unchanged in (("published", False), ("quick", True)):
        text = prose.prose(FINDING, "a page", run(preset, unchanged, claims={"C7": verdict(-0.1)}))
        assert "It leads by" not in text
        assert "## After" in text
        assert claims.claims("bayes")["C7"]["text"] in text
        assert "verdict-contradicted" in text and verdict(-0.1)["brief"] in text


def output(data, **metadata):
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def notebook(*outputs, text="Lead {ours}`lead`."):
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": text},
        {"cell_type": "code", "id": "b", "metadata": {}, "source": "", "outputs": list(outputs)},
    ]
    return {
        "cells": cells,
        "metadata": {
            "mia": {
                "notebook": "bayes",
                "preset": "published",
                "parameters": validate("bayes", {}, "published", ROOT),
            }
        },
    }


def test_captions_and_alternative_texts_are_told_too(monkeypatch):
    shown = []
    monkeypatch.setattr(
        results,
        "display_bundle",
        lambda bundle, more=None: shown.append(output(bundle, **(more or {}))),
    )
    results.name({"lead": Interval(0.0191, 0.0142, 0.0249)}, ".1%")
    figure = output(
        {"image/png": "", "text/plain": "alt {ours}`lead:value`"},
        mia={"name": "f", "caption": "c {ours}`lead`", "alt": "a {param}`seeds`"},
    )
    made = notebook(*shown, figure)
    told = prose.resolve_roles(made, prose.run_of(made, ROOT))
    assert told["cells"][0]["source"] == "Lead 1.9 % [1.4, 2.5]."
    assert told["cells"][1]["outputs"][1]["metadata"]["mia"] == {
        "name": "f",
        "caption": "c 1.9 % [1.4, 2.5]",
        "alt": "a 100",
    }
    assert told["cells"][1]["outputs"][1]["data"]["text/plain"] == "alt 1.9 %"
    record = told["metadata"]["mia"] | RECORD
    made = pages.page({**told, "metadata": {"mia": record}})
    assert "results+json" not in json.dumps(made) and "lead = " not in json.dumps(made)


def test_a_number_is_said_as_its_table_has_it_or_refused(monkeypatch):
    seen = {}
    monkeypatch.setattr(
        results, "display_bundle", lambda bundle: seen.update(bundle[results.RESULTS])
    )
    given = {
        "wide": Interval(0.2, 0.1, 0.3),
        "flat": Interval(0.2, 0.2, 0.2),
        "peak": Interval(0.2, float("nan"), float("nan")),
        "exact": Interval(0.2, 0.2, 0.2, exact=True),
    }
    results.name(given, ".2f")
    json.dumps(seen, allow_nan=False)
    for name, interval in given.items():
        assert prose.prose(f"{{ours}}`{name}`", "cell", run(results=seen)) == format(
            interval, ".2f"
        )
    few = metrics.by_target({"coin": np.arange(20.0)}, np.arange(20) % 2 == 0, ["tpr_at_fpr=0.01"])
    results.name({"rate": metrics.estimate(few, "coin", "tpr_at_fpr=0.01").interval()})
    assert seen["rate"] == {"text": "a share that so few records do not resolve"}
    for name, value, words in (
        ("Lead", 1.0, "cannot be linked"),
        ("lead", float("nan"), "cannot be said"),
    ):
        with pytest.raises(MiaError, match=words):
            results.name({name: value})
    one = output({outputs.RESULTS: {"lead": LEAD}})
    with pytest.raises(MiaError, match="two results are named 'lead'"):
        outputs.displayed(notebook(one, one))
