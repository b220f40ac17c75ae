"""Rules of claims: what an expression says, and what every rule makes of noise, of a coin and of the paper's numbers."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from mia_book import folders
from mia_book.chapters.curvature import exhibits
from mia_book.evidence import claims, results, rules
from mia_lib import membership, metrics
from mia_lib.errors import MiaError

PAPERS = sorted(folders.find("claims.yaml"))
MEMBERS = membership.balanced_halves(2000, 20, 1)[::2]
# how far the scores of members lead, in standard deviations
LEADS = COIN, LOW, MIDDLE, HIGH, SMALL = 0.0, 0.3, 1.0, 2.0, 0.6
CONSTANT = None  # in the place of a lead: all scores are alike
# about what a result then is
VALUES = {COIN: 0.5, LOW: 0.55, SMALL: 0.65, MIDDLE: 0.75, HIGH: 0.95}
ERRORS = {"share", "calls"}  # metrics that are lower the more an attack finds
PLAYED = 60  # attacks with each lead; no claim names more results in both of its cases
# Claims that an attack passes which is as weak as all that it is compared with: it is compared with no other attack.
OF_WEAK_ATTACKS = {
    "calibration": {"C6"},
    "curvature": {"C1"},
    "iha": {"C4", "C11"},
    "quantile": {"C6", "C11"},
    "text": {"L16", "L21", "L30"},
}
# what says that an attack finds next to nothing: a coin does not contradict it, and a leak does
OF_NO_LEAK = {"text": {"L1", "L7", "L13"}}


def results_of(claim):
    """The results that a claim's rule names in one of its cases, each once: attack, metric and the values of further columns,
    in an order in which the first comes first and the last last."""
    named, order = [], {"first": 0, "last": 2}
    for result in rules.named_results(claim["rule"]):
        if result not in named:
            named.append(result)
    return sorted(named, key=lambda one: sum(order.get(value, 1) for value in one[2].values()))


@cache
def all_metrics():
    named = [
        rules.named_results(claim["rule"])
        for paper in PAPERS
        for claim in claims.claims(paper).values()
        if not rules.LIMITS & claim.keys()
    ]
    return list(dict.fromkeys(metric for results in named for _, metric, _ in results))


@cache
def played(lead):
    """Attacks whose scores of members lead by so much, on ten targets: of each, metric -> `Estimate`."""
    rng = np.random.default_rng([1, LEADS.index(lead) if lead in LEADS else len(LEADS)])
    found = []
    for _ in range(PLAYED):
        scores = rng.normal(size=MEMBERS.shape) * (lead is not CONSTANT) + (lead or 0) * MEMBERS
        found.append(estimates_of(scores))
    return found


def estimates_of(scores):
    """Metric -> `Estimate` of scores, for all that rules name: metrics of ranking; those that are no shares of records, from
    the AUC; and for all others the accuracy of calls."""
    ranks = {
        name: "tpr_at_fpr=0.01" if name == "tpr" else name
        for name in all_metrics()
        if name in metrics.ranking.CORES or "_at_fpr" in name or name == "tpr"
    }
    called = {"a": (scores >= np.median(scores)).astype(float)}
    ranked = metrics.by_target({"a": scores}, MEMBERS, [*dict.fromkeys(ranks.values())], draws=20)
    calls = metrics.by_target(called, MEMBERS, ["auc"], draws=20)
    near = 2 * metrics.auc(scores, MEMBERS) - 1
    found = dict.fromkeys(all_metrics(), calls["estimate"].item())
    for name in ("slope", "rank correlation", "kappa", "excess"):  # Boltzmann's slope is minus one
        values = {"a": {name: near - (name == "slope")}}
        found[name] = metrics.by_repetition(values)["estimate"].item()
    for name in ERRORS:
        found[name] = metrics.by_repetition({"a": {name: (1 - near) / 2}})["estimate"].item()
    found["evidence"] = metrics.by_repetition({"a": {"evidence": near**2}})["estimate"].item()
    by_metric = ranked.set_index("metric")["estimate"]
    return found | {name: by_metric[metric] for name, metric in ranks.items()}


def frame_of(claim, estimates):
    """Results that a claim's rule names, with these estimates, in as many of its cases as there are estimates of all."""
    named = results_of(claim)
    columns = [*claim.get("over", ()), *claim.get("settings", ())]
    cases = np.array_split(estimates, max(1, len(estimates) // len(named)))
    rows = [
        {
            **dict.fromkeys(columns, f"case {k}"),
            **claim.get("where", {}),
            **further,
            "attack": attack,
            "metric": metric,
            "value": estimate.value,
            "estimate": estimate,
        }
        for k, of_case in enumerate(cases)
        for (attack, metric, further), estimate in zip(named, of_case, strict=True)
    ]
    return pd.DataFrame(rows)


def least(claim, values):
    """Value of a claim's rule for values of the results that it names."""
    ones = [metrics.by_repetition({"a": {"a": value}})["estimate"].item() for value in values]
    return min(part.value for part in rules.evaluate(claim["rule"], frame_of(claim, ones)))


@cache
def leads_of(paper, claim_id):
    """The lead with which each result of a claim's rule makes it so: a high one where the rule's value rises with it, a low
    one where it falls, and otherwise what is best; noise has none."""
    claim, step = claims.claims(paper)[claim_id], 0.01
    named, leads = results_of(claim), []
    for (attack, metric, _), moved in zip(named, step * np.eye(len(named)), strict=True):
        slope = least(claim, 0.5 + moved) - least(claim, 0.5 - moved)
        slope = -slope if metric in ERRORS else slope
        among = [LOW if slope < 0 else HIGH] if abs(slope) > 1e-9 else [LOW, SMALL, MIDDLE, HIGH]
        leads.append([COIN] if attack == "noise" else among)

    def of_leads(some):
        values = [VALUES[lead] for lead in some]
        signs = [metric in ERRORS for _, metric, _ in named]
        return least(claim, [1 - v if error else v for v, error in zip(values, signs, strict=True)])

    return max(product(*leads), key=of_leads)


def world(claim, leads, seed=1):
    """Results in two cases of a claim, if it has any, in which each result has its lead; seeds have attacks of their own."""
    cases = 2 if claim.get("over") or claim.get("settings") else 1
    numbers = np.random.default_rng(seed).permutation(PLAYED)[: cases * len(leads)]
    results = zip(numbers, results_of(claim) * cases, [*leads] * cases, strict=True)
    estimates = [played(lead)[number][metric] for number, (_, metric, _), lead in results]
    return frame_of(claim, estimates)


def judged(paper, claim, frame):
    known = claims.claims(paper)[claim]
    return rules.judge(paper, claim, frame, {known["exhibit"]: known.get("needs", {})}).verdict


@pytest.mark.parametrize("paper", PAPERS)
def test_where_nothing_leaks_nothing_is_reproduced(paper):
    """Of twenty worlds of noise one may say so by chance, at the confidence of 95 %; four would two times in a thousand. Where
    none of the first eight does, the others are not played: a rule that says so in every second world has none among
    eight four times in a thousand."""
    for claim, known in claims.claims(paper).items():
        if rules.LIMITS & known.keys() or claim in OF_NO_LEAK.get(paper, ()):
            continue
        times = 0
        for seed in range(20):
            if seed == 8 and not times:
                break
            frame = world(known, [COIN] * len(results_of(known)), seed)
            times += judged(paper, claim, frame) == claims.REPRODUCED
        assert times <= 3, f"{claim} is reproduced in {times} of 20 worlds without a leak"


@pytest.mark.parametrize("paper", PAPERS)
def test_with_a_coin_in_the_place_of_the_attack_nothing_is_reproduced(paper):
    """And with the attack itself, in a world as the claim has it, every claim is. By chance a coin may be ahead in one
    world, but not in two. A constant never passes, nor does an attack as weak as what it is compared with if that is an
    attack."""
    for claim, known in claims.claims(paper).items():
        if "about" not in known:
            continue
        names = [attack for attack, _, _ in results_of(known)]
        about = {known["about"]} if isinstance(known["about"], str) else {*known["about"]}
        assert about <= {*names}, f"{claim}: the rule does not name {about - {*names}}"
        if claim in OF_NO_LEAK.get(paper, ()):
            assert judged(paper, claim, world(known, [COIN] * len(names))) != claims.CONTRADICTED
            assert judged(paper, claim, world(known, [HIGH] * len(names))) == claims.CONTRADICTED
            continue
        leads = leads_of(paper, claim)
        verdict = judged(paper, claim, world(known, leads))
        assert verdict == claims.REPRODUCED or "needs" in known, (
            f"{claim} is {verdict} with leads {dict(zip(names, leads, strict=True))}"
        )
        weak = claim in OF_WEAK_ATTACKS.get(paper, ())
        for replaced, lead, passes in (
            (about, COIN, False),
            ({*names}, COIN, False),
            (about, CONSTANT, False),
            (about, LOW, weak),
        ):
            others = [
                lead if name in replaced else own for name, own in zip(names, leads, strict=True)
            ]
            verdicts = {judged(paper, claim, world(known, others, seed)) for seed in (1, 2)}
            assert passes or verdicts != {claims.REPRODUCED}, (claim, lead)


def printed_results(paper):
    return pd.concat(globals()[f"printed_{paper}"](), ignore_index=True)


def of_row(row, attack=None, **where):
    """What a row of a paper's table says in percent, as a result."""
    return metrics.by_repetition({attack or row.attack: {row.metric: row.value / 100}}, **where)


def printed_calibration():
    from mia_book.chapters.calibration.exhibits import printed

    frames = []
    for table, study, metric in (
        ("table2", "plays", "auc"),
        ("table3", "plays", "accuracy"),
        ("table4", "label-only", "auc"),
    ):
        rows = printed(table).query(f"metric == '{metric}'")
        frames += [
            of_row(row, study=study, data=row.data, score=row.score, reading="negative")
            for row in rows.itertuples()
        ]
        frames += [
            of_row(row, study="stopped", stopped="as printed", data=row.data, score=row.score)
            for row in (rows.query("data == 'CIFAR-10'").itertuples() if table == "table2" else ())
        ]
        for data, part in rows.groupby("data", sort=False) if table == "table2" else ():
            calibrated = part["attack"].str.startswith("Cal.")
            for attack, of in ("best calibrated", calibrated), ("best other", ~calibrated):
                best = {attack: {"auc": part.loc[of, "value"].max() / 100}}
                frames.append(metrics.by_repetition(best, study=study, data=data, score="any"))
    return frames


def printed_curvature():
    from mia_book.chapters.curvature import study

    one, two = exhibits.printed("table1"), exhibits.printed("table2", "table3", "table4")
    low = exhibits.printed("table5")
    printed = [*one.itertuples(), *two[two["views"] == "1 view"].itertuples(), *low.itertuples()]
    where = {"study": "attacks", "references": "64 references"}
    frames = [of_row(row, **where, data=row.data, views=row.views) for row in printed]
    known = exhibits.notebooks().sort_values("size").assign(value=lambda rows: 100 * rows["paper"])
    of_random = known[known["kind"] == "random"]
    studies = {"sizes": known} | {
        f"beyond {size:,}": of_random[of_random["size"] > size] for size in study.CROSSINGS.values()
    }
    for name, rows in studies.items():
        frames += [
            of_row(row, study=name, networks=study.SMALL, kind=row.kind, size=row.size)
            for row in rows.itertuples()
        ]
    return frames


def printed_iha():
    from mia_book.chapters.iha import exhibits, study

    frames = []
    for row in exhibits.printed("table2").itertuples():
        where = {"kind": "table" if row.data == "Purchase-100" else "images", "lira": "as released"}
        found = of_row(row, study="against LiRA", data=row.data, **where)
        frames.append(study.by_metric(found))
    for row in exhibits.printed("table4").itertuples():
        terms = (
            row.setting.removeprefix("terms used: ").replace("All", "all").replace("l,", "loss,")
        )
        assert terms in study.TERMS
        found = of_row(row, terms, study="terms", data=row.data)
        strict = row.metric != "auc"
        frames += [found, study.by_metric(found).assign(study="parts", strict=strict)]
    by_size = exhibits.printed("table7").query("model != 'MLP-4'")
    for row in by_size.sort_values("data", ascending=False).itertuples():
        where = {"of": row.attack, "members": "25,000 to 80,000"}
        found = of_row(row, "leak", study="leak", size=row.data == "Purchase-100", **where)
        frames.append(study.by_metric(found)[lambda rows: rows["by"] != "TPR at 0.1 %"])
    for row in exhibits.printed("table8").itertuples():
        way, epsilon = row.setting.split("; eps = ")
        setting = {"way": way.replace("-", " "), "epsilon": float(epsilon), "loss": "added"}
        frames.append(of_row(row, study="conditioning", data=row.data, **setting))
    for row in exhibits.printed("table9").itertuples():
        setting = {
            "rule": "as released",
            "fraction": float(row.setting.split("L0 = ")[1].split(";")[0]),
        }
        frames.append(of_row(row, "IHA", study="partial", data=row.data, **setting))
    return frames


def printed_quantile():
    from mia_book.chapters.quantile.exhibits import printed, printed_pairs

    frames = []
    for kind, table in (("images", "table1"), ("tables", "table2")):
        once = printed(table).drop_duplicates(["dataset", "attack", "n", "metric", "rate"])
        for row in once.itertuples():
            where = {"kind": kind, "data": row.dataset.replace("-1k", ""), "score": "position"}
            frames.append(of_row(row, study="attacks", n=row.n, rate=row.rate, **where))
    for rate, (agree, count, _) in printed_pairs().items():
        where = {"study": "pairs", "data": "paper", "protocol": "as fitted", "rate": rate}
        frames.append(metrics.by_repetition({"pairs": {"agreement": agree / count}}, **where))
    return frames


def printed_bayes():
    frames = []
    one = results.paper("bayes", "table1")
    ours = {
        "attack_accuracy": ("balanced_accuracy", "auc"),
        "map_train": ("average_precision",),
        "map_test": ("average_precision_non_members",),
    }
    noise = {400: 0.5277, 6000: 0.5071}  # of random numbers
    for row in one[one["metric"].isin(ours)].itertuples():
        n = int(row.setting.split(";")[0].removeprefix("n = "))
        found = dict.fromkeys(ours[row.metric], row.value / 100)
        frames.append(metrics.by_repetition({row.attack: found}, study="table 1", n=n))
    for n, value in noise.items():
        of_noise = {"noise": {"balanced_accuracy": value}}
        frames.append(metrics.by_repetition(of_noise, study="table 1", n=n))
    for row in results.paper("bayes", "table2").assign(metric="accuracy").itertuples():
        frames += [of_row(row, study=study) for study in ("table 2", "shadow models")]
    strengths = {"None": "none", "Flip, Crop +-5": "shift", "Flip, Crop": "crop"}
    for row in results.paper("bayes", "table3").assign(metric="accuracy").itertuples():
        strength = strengths[row.setting.removeprefix("augmentation: ")]
        frames.append(of_row(row, study="table 3", network=row.model, augmentation=strength))
    return frames


# What its tables show. Of C7m the Bayes paper prints a threshold chosen on the records judged, of others nothing.
SHOWN = {
    "bayes": {"C7", "C8", "C9", "C10", "C11m", "C11s", "C12", "C13", "C14"},
    "calibration": {"C1", "C2", "C2g", "C2l", "C3", "C3l", "C4", "C7", "C8", "C9", "C10"},
    "curvature": {"C3", "C4", "C5", "C6", "C9", "C9n", "C9l", "C10"},
    "iha": {"C3", "C4", "C7", "C8", "C8s", "C9", "C13", "C13l", "C15", "C16"},
    "quantile": {"C3", "C4", "C5", "C6", "C7", "C8", "C11", "C12"},
}
# that a claim is about, where an exhibit has others, too
SETS = {("quantile", "C5"): ("CIFAR-10", "CIFAR-100")}


@pytest.mark.parametrize("paper", SHOWN)
def test_the_papers_printed_numbers_pass_every_rule_about_them(paper):
    frame, passed = printed_results(paper), set()
    for claim, known in claims.claims(paper).items():
        sets = SETS.get((paper, claim))
        of_claim = frame[frame["data"].isin(sets)] if sets else frame
        if rules.LIMITS & known.keys() or known["kind"] == "ours":
            continue
        columns = [*known.get("over", ()), *known.get("settings", ())]
        if cases := rules.cases_of({**known, "over": columns}, of_claim):
            value = min(part.value for part in rules.combined(known, cases))
            assert value > 0, (claim, value)
            passed.add(claim)
    assert passed == SHOWN[paper]


FRAME = pd.concat(
    [
        metrics.by_repetition(
            {"a": {"auc": np.linspace(0.6, 0.7, 10)}, "b": {"auc": np.linspace(0.5, 0.55, 10)}}, n=n
        )
        for n in (100, 200)
    ],
    ignore_index=True,
)


@pytest.mark.parametrize(
    "rule, values",
    [
        ("{a | auc} - {b | auc}", [0.125]),
        ("({a | auc} + {b | auc}) / 2", [0.5875]),
        ("abs({b | auc} - {a | auc})", [0.125]),
        ("-{a | auc}", [-0.65]),
        ("least({a | auc}, {b | auc}) - 0.5", [0.15, 0.025]),
        ("least({a | auc} - 0.5, 2 * least({b | auc}, {a | auc}))", [0.15, 1.05, 1.3]),
        ("0.7 - most({a | auc}, {b | auc}, 0.6) / 2 + 0 * {a | auc}", [0.375, 0.4375, 0.4]),
    ],
)
def test_an_expression_is_evaluated_over_results(rule, values):
    assert [part.value for part in rules.evaluate(rule, FRAME[FRAME["n"] == 100])] == pytest.approx(
        values
    )
    grown = FRAME.assign(estimate=FRAME["estimate"] + 0.1 * (FRAME["n"] == 200))
    [part] = rules.evaluate(
        "{a | auc | n = first} - {b | auc | n = last} + {a | auc | n = 200}", grown
    )
    assert part.value == pytest.approx(0.025 + 0.75)


@pytest.mark.parametrize(
    "rule, words",
    [
        ("{a | auc} -", "is no expression"),
        ("open('x')", "neither a result"),
        ("{a | auc} ** 2", "neither a result"),
        ("least({a | auc}, most({b | auc}, 0))", "neither"),
        ("least({a | auc}, 0) - least({b | auc}, 0)", "cannot be joined"),
        ("-2 * least({a | auc}, {b | auc})", "cannot be joined"),
        ("1 / most({a | auc}, {b | auc})", "cannot be joined"),
        ("most({a | auc}, {b | auc})", "the other end"),
        ("least({a | auc}, 0)", "a number and no result"),
        ("{a | acu}", "Did you mean 'auc'"),
        ("{a | auc | n = 300}", "n = '300'"),
    ],
)
def test_what_is_no_rule_is_refused(rule, words):
    with pytest.raises(MiaError, match=words):
        rules.evaluate(rule, FRAME[FRAME["n"] == 100])


def verdict_of(difference, monkeypatch, count=10, **claim):
    known = {
        "id": "X",
        "text": "text",
        "exhibit": "Table 1",
        "rule": "{a | auc} - {b | auc}",
        "kind": "paper",
        "evidence": "",
        **claim,
    }
    monkeypatch.setattr(claims, "claims", lambda paper: {"X": known})
    frame = metrics.by_repetition(
        {
            "a": {"auc": 0.6 + difference + np.linspace(-0.01, 0.01, count)},
            "b": {"auc": np.full(count, 0.6)},
        }
    )
    return rules.judge("bayes", "X", frame)


@pytest.mark.parametrize(
    "difference, claim, verdict",
    [
        (0.05, {}, "reproduced"),
        (-0.05, {}, "contradicted"),
        (0.001, {}, "inconclusive"),
        (0.001, {"margins": {"same": 0.02}}, "no difference"),
        (-0.01, {"margins": {"same": 0.02}}, "no difference"),
        (-0.05, {"margins": {"same": 0.02}}, "contradicted"),
        (0.05, {"rounding": 0.1}, "checked"),
        (0.05, {"rounding": 0.01}, "contradicted"),
        (0.05, {"bound": 0.1, "number": "gap"}, "reproduced"),
        (0.05, {"bound": 0.01, "number": "gap"}, "contradicted"),
        (0.05, {"where": {"attack": "c"}}, "not run"),
        (0.05, {"rule": "{a | auc | metric = tpr} - {b | auc}"}, "not run"),
        (0.05, {"needs": {"dataset": "imagenet"}, "otherwise": "no ImageNet"}, "not run"),
    ],
)
def test_verdicts_follow_from_one_number(difference, claim, verdict, monkeypatch):
    assert verdict_of(difference, monkeypatch, **claim).verdict == verdict


def test_all_parts_of_a_claim_decide_and_the_largest_case_keeps_a_bound():
    rng = np.random.default_rng(0)
    sure, wide, flat = (
        metrics.by_repetition({"a": {"auc": 0.1 + spread * rng.normal(size=10)}})
        for spread in (0.01, 2, 0)
    )
    sure, wide, flat = (metrics.estimate(one, "a", "auc") for one in (sure, wide, flat))
    wide = wide + (1 - wide.value)  # far above the sure one, as far as it is known
    least = rules.least([sure, wide])
    assert least.value == sure.value
    assert least.low == wide.interval().low < 0 < sure.interval().low
    assert least.sign == 0
    assert rules.least([sure, wide + 9]).sign == 1 and rules.least([sure, -wide - 9]).sign == -1
    assert rules.least([sure, flat + 1]).degenerate
    assert rules.least([sure]).low == sure.interval().low
    known = {"rule": "{a | auc}", "over": ["n"], "bound": 0.7}
    grown = FRAME.assign(estimate=FRAME["estimate"] + 0.1 * (FRAME["n"] == 200))
    assert [
        part.value for part in rules.combined(known, rules.cases_of(known, grown))
    ] == pytest.approx([0.65, 0.75])


def test_few_repetitions_and_a_rate_that_is_not_resolved_decide_nothing(monkeypatch):
    members = np.tile(np.arange(300) < 100, (8, 1))
    scores = {
        name: np.random.default_rng(0).normal(size=members.shape) for name in ("MAST", "MALT")
    }
    frame = metrics.by_target(scores, members, ("tpr_at_fpr=0.001",), shared=False).assign(
        metric="tpr_at_fpr=0.01", study="settings", data="Table 2", references=6
    )
    found = rules.judge("bayes", "A1", frame)
    assert found.verdict == "not run" and "do not resolve" in found.reason
    found = verdict_of(0.05, monkeypatch, count=rules.MIN_REPETITIONS - 1)
    assert found.verdict == "not run" and "8 are needed" in found.reason


def test_a_number_is_said_only_where_each_part_has_one_and_of_a_bound_the_largest(monkeypatch):
    """Python's min passes over what is not a number if it does not come first."""
    claim = {"rule": "{ }", "where": {}}
    monkeypatch.setattr(claims, "claims", lambda paper: {"C": claim})
    frame = metrics.by_repetition(
        {"a": {"auc": np.full(10, 0.7), "tpr_at_fpr=0.001": np.full(10, np.nan), "far": [0.9] * 10}}
    )
    claim["rule"] = "least({a | auc} - 0.5, {a | tpr_at_fpr=0.001} - 0.1)"
    assert rules.number_of("any", "C", frame) == claims.NOT_RUN
    claim |= {"rule": "most({a | auc}, {a | far})", "bound": 1.0}
    assert rules.number_of("any", "C", frame) == pytest.approx(0.9)


def test_cases_that_differ_in_the_seventh_digit_are_two():
    frame = pd.concat(
        metrics.by_repetition({"a": {"auc": np.full(10, 0.7)}}, n=n) for n in (1234567.0, 1234568.0)
    )
    claim = {"rule": "{a | auc} - 0.5", "over": ["n"]}
    assert list(rules.cases_of(claim, frame)) == ["n = 1234567", "n = 1234568"]


def test_the_number_is_the_mean_over_cases_and_these_are_shown():
    frame = pd.concat(
        [
            metrics.by_repetition(
                {
                    "MATT": {"balanced_accuracy": 0.6 + lead + np.linspace(-0.01, 0.01, 10)},
                    "MALT": {"balanced_accuracy": np.full(10, 0.6)},
                },
                study="table 1",
                n=n,
            )
            for n, lead in ((400, 0.06), (1000, -0.02))
        ],
        ignore_index=True,
    )
    found = rules.judge("bayes", "C7", frame)
    assert found.number.value == pytest.approx(0.02)
    assert list(found.cases) == ["n = 400", "n = 1000"]
    cases = rules.cases_of(claims.claims("bayes")["C7"], frame)
    assert [one.value for one in rules.combined({"combine": "least"}, cases)] == pytest.approx(
        [0.06, -0.02]
    )
    record = found.record()
    assert [one["part"] for one in record["numbers"]] == ["", "n = 400", "n = 1000"]
    assert record["numbers"][1]["value"] == pytest.approx(6)
    assert record["numbers"][1]["unit"] == "points"
    assert record["brief"].endswith("wholly above zero in 1 of 2 cases, wholly below in 1")


def test_a_regime_is_data_architecture_and_sizes_within_a_factor_of_two():
    table_2 = {
        "dataset": "cifar10",
        "architecture": "tanh_cnn:16,32,128",
        "members": 15_000,
        "epochs": 25,
    }
    own = {"Table 2": table_2}
    assert claims.regime("bayes", "Table 2", own) == claims.OWN_DATA
    for change in (
        {"dataset": "cifar100"},
        {"architecture": "mlp:64"},
        {"members": 7000},
        {"epochs": 101},
    ):
        assert claims.regime("bayes", "Table 2", {"Table 2": table_2 | change}) == claims.STAND_IN
    assert claims.regime("bayes", "Theorem 2", own) == ""


def test_the_number_of_a_claim_is_said_with_either_sign_and_only_where_there_is_one():
    frame = world(claims.claims("calibration")["C5"], leads_of("calibration", "C5"))
    number = rules.number_of("calibration", "C5", frame)
    assert number == -rules.number_of("calibration", "C5", frame, -1) != 0
    with pytest.raises(MiaError, match="A3 is asked in several settings"):
        rules.number_of("calibration", "A3", frame)
    for none in (
        frame.assign(estimate=frame["estimate"] * np.nan),
        frame[:0],
    ):  # not resolved, not there
        assert rules.number_of("calibration", "C5", none, -1) == claims.NOT_RUN
