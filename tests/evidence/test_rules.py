"""Rules of claims: what an expression says, and what every rule makes of noise, of a coin and of the paper's numbers."""

from functools import cache
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

from mia_book import folders
from mia_book.chapters.curvature import exhibits
from mia_book.evidence import claims, results, rules
from mia_lib import membership, metrics
from mia_lib.errors import MiaError

PAPERS = sorted(folders.find("claims.yaml"))
SETTINGS = {
    "n": [400, 2000, 6000],
    "network": ["a", "b"],
    "augmentation": ["none", "shift", "crop"],
    "temperature": [0.1, 5.0],
}
SETTINGS_OF = {
    "bayes": {"data": ["Table 2", "small CNNs"], "references": [6, 30]},
    "audit": {
        "noise": ["without", "private"],
        "promised": [1.0, 8.0],
        "by": ["MALT", "LiRA"],
        "twin": ["to the end", "as accurate"],
        "recipe": ["as it is", "twin"],
        "bound": ["right guesses", "Gaussian"],
    },
    "compare": {
        "data": ["CIFAR-10", "CIFAR-100"],
        "references": [0, 1, 2, 8],
        "rate": ["1 %"],
        "overlap": ["half", "nothing"],
        "recipe": ["none", "flips and crops"],
        "asks": ["LiRA", "RMIA"],
        "measure": ["AUC"],
    },
    "banks": {
        "data": ["CIFAR-10", "FashionMNIST"],
        "ranking": ["LiRA", "other networks"],
        "part": ["first tenth", "all"],
        "by": ["LiRA", "RMIA"],
        "measure": ["TPR at 1 %"],
        "taken": ["the exposed", "drawn by lot"],
        "trained": ["with them", "without them"],
    },
    "calibration": {
        "data": ["German Credit", "CIFAR-10"],
        "score": ["loss", "gradient norm", "confidence"],
        "reading": ["negative"],
        "references": [2, 30],
        "share": [0.25, 0.75],
        "equal": ["epochs", "steps"],
        "stopped": ["10", "at its best"],
        "epsilon": [3.0, 1000.0],
    },
    "curvature": {
        "data": ["one set"],
        "views": ["1 view", "2 views"],
        "references": ["8 references", "30 references"],
        "measure": ["AUC"],
        "epsilon": [0.5, 10.0, 50.0],
        "size": [25_000, 45_000],
        "kind": ["random", "coreset"],
    },
    "iha": {
        "data": ["one set", "another"],
        "kind": ["images", "table"],
        "told": ["membership", "random flags", "nothing"],
        "judged": ["membership", "flags"],
        "way": ["damping", "low rank"],
        "epsilon": [0.01, 0.1, 0.2],
        "fraction": [0.2, 0.8, 1.0],
        "rule": ["as released"],
        "size": [1000, 15_000],
        "lira": ["by the text", "as released"],
        "by": ["AUC", "TPR at 1 %"],
        "strict": [True],
        "rate": [0.05, 0.3],
        "beside": ["RMIA", "LOSS"],
        "loss": ["added", "left out"],
        "epochs": [10, 320],
        "of": ["LOSS", "IHA"],
        "members": ["1,000 to 15,000"],
        "references": [14, 126],
    },
    "quantile": {
        "data": ["one set", "another"],
        "n": [4, 30],
        "rate": ["1 %", "0.1 %"],
        "score": ["position", "loss"],
        "target": ["small CNN", "ResNet-9"],
        "references": ["own", "other"],
        "kind": ["images", "tables"],
        "protocol": ["as fitted", "moved"],
    },
}
# Attacks from weak to strong, for a world in which what the claims say is so.
STRENGTH = {
    "noise": 0.0,
    "0-1": 0.5,
    "Shadow models": 0.8,
    "MALT": 1.1,
    "MAST": 1.7,
    "MATT": 1.7,
    "Eq. 39": 1.7,
    "MAST (softmin)": 1.7,
    "best rule": 1.0,
    "Orig": 1.1,
    "Cal.": 2.0,
    "Cal.-F": 1.6,
    "Cal., never stopped": 1.4,
    "best calibrated": 2.0,
    "best other": 1.1,
    "RMIA, offline": 2.6,
    "MAST (midpoint)": 3.0,
    "LiRA": 2.6,
    "Curv ZO NLL": 2.0,
    "Curv ZO LR": 1.9,
    "LiRA, as released": 1.4,
    "Yeom": 0.8,
    "Watson": 0.8,
    "Attack R": 1.0,
    "Song and Mittal": 0.6,
    "log curvature": 0.8,
    "LiRA, one spread": 1.8,
    "log odds": 1.1,
    "LiRA + curvature": 3.4,
    "Curv, log ratio": 1.0,
    "as released, float64": 1.5,
    "Frobenius norm, exact": 0.8,
    "the same, each model's own label": 1.0,
}
STRENGTH_OF = {
    "audit": {
        "network": 1.6,
        "with references": 2.2,
        "gradients": 2.4,
        "gradients, many runs": 1.4,
    },
    "banks": {"with references": 2.6},
    "compare": {
        "calibrated loss": 2.3,
        "RMIA": 3.2,
        "LiRA, own spreads": 4.6,
        "BaVarIA": 4.0,
        "one query": 1.6,
        "18 queries": 3.2,
    },
    "iha": {
        "IHA": 3.6,
        "LOSS": 0.6,
        "SIF": 0.6,
        "RMIA": 2.9,
        "LiRA, the target among its references": 3.4,
        "SGD": 3.0,
        "gradient alone": 2.6,
        "IHA with weight decay in I2": 6.0,
        "I1": 0.6,
        "I2": 1.0,
        "I1, I2": 2.0,
        "loss, I1, I2": 2.6,
        "all": 2.05,
        "L-attack": 1.2,
        "LiRA-L": 0.8,
        "losses": 1.0,
        "IHA and losses": 0.3,
        "IHA, learned": 6.0,
        "leak": 2.0,
    },
    "quantile": {
        "Marginal": 0.6,
        "Gaussian, q(x)": 0.8,
        "Gaussian, q(x, y)": 1.4,
        "LiRA, public records": 1.9,
        "LiRA, offline": 2.6,
        "pairs": 1.5,
        "own settings": 1.0,
        "others' settings": 1.0,
    },
}
WEAKER = {
    2000: 0.7,
    6000: 0.4,
    "shift": 0.55,
    "crop": 0.2,
    5.0: 0.4,
    "confidence": 0.4,
    "CIFAR-10 (aug.)": 0.6,
    2: 0.8,
    0.25: 0.7,
    3.0: 0.4,
    "1 view": 0.75,
    0.5: 0.2,
    25_000: 0.9,
    45_000: 0.8,
    "coreset": 1.4,
}
WEAKER_OF = {
    "audit": {"private": 0.3},
    "banks": {"all": 0.4},
    "compare": {"nothing": 0.6, 1: 0.75},
    "iha": {"against LiRA": 0.5, "told": 0.5, "learned": 0.5, 15_000: 0.6},
}
STANDS_OF = {  # what two leave
    "banks": {("the exposed", "with them"): 0.5},
    "curvature": {
        ("LiRA", "attacks"): 0.5,
        ("coreset", 25_000): 0.7,
        ("MAST", "attacks"): 0.6,
    },
    "iha": {
        ("I1, I2", "flags"): 1.2,
        ("conditioning", 0.01): 0.5,
        ("conditioning", 0.1): 0.7,
        ("conditioning", "low rank"): 0.6,
        ("partial", 0.2): 0.3,
        ("partial", 0.8): 0.6,
    },
    "quantile": {
        ("Gaussian, q(x, y)", "ImageNet"): 2.4,
        ("Gaussian, q(x, y)", "tables"): 2.2,
        ("own", "small CNN"): 1.0,
        ("other", "small CNN"): 0.8,
        ("other", "ResNet-9"): 0.3,
        ("Gaussian, q(x, y)", "CINIC-10"): 1.4,
        ("Gaussian, q(x, y)", "loss"): 1.2,
        ("LiRA, public records", "tables"): 2.6,
        ("Gaussian, q(x, y)", "position, hardest quarter"): 1.3,
    },
}
SHARP = {("Curv ZO LR", "attacks")}  # which finds few members, and those surely
# attacks of which some non-members have the best scores; of others they have the worst
MISTAKEN = {"Orig"}
# of each target; a rate of one in a thousand wants as many non-members
RECORDS = {"curvature": 2000, "quantile": 2000}
# whose targets share their records
BANKS = (
    "settings",
    "table 2",
    "shadow models",
    "table 3",
    "bank",
    "signals",
    "private",
    "sizes",
    "large sizes",
    "attacks",
    "against LiRA",
    "measures",
    "told",
    "terms",
    "parts",
    "conditioning",
    "learned",
    "self",
    "leak",
    "partial",
    "epochs",
    "mismatch",
    "most",
    "exposed",
    "onion",
    "references",
    "privacy",
)


@cache
def named(paper, only=None):
    """All that the rules of a paper name, or that of one claim: study, attack and setting -> its columns, and metrics."""
    known, settings, found = claims.claims(paper), SETTINGS | SETTINGS_OF.get(paper, {}), {}
    columns_of: dict[str, list[str]] = {}
    for claim in known.values():
        for _, _, further in rules.named_results(claim["rule"]):
            of_study = columns_of.setdefault(
                further.get("study", claim.get("where", {}).get("study")), []
            )
            columns = (
                *claim.get("over", ()),
                *claim.get("settings", ()),
                *claim.get("where", ()),
                *further,
            )
            of_study += [
                one for one in dict.fromkeys(columns) if one in settings and one not in of_study
            ]
    for claim in known.values() if only is None else [known[only]]:
        for attack, metric, further in (
            rules.named_results(claim["rule"]) if not rules.LIMITS & claim.keys() else ()
        ):
            study = further.get("study", claim.get("where", {}).get("study"))
            fixed = {}
            for column, value in {**claim.get("where", {}), **further}.items():
                if value not in ("first", "last"):
                    same = [
                        one for one in settings.get(column, ()) if rules.written(one) == str(value)
                    ]
                    fixed[column] = [*same, value][:1]
            values = [fixed.get(one, settings[one]) for one in columns_of[study]]
            for setting in pd.MultiIndex.from_product(values or [[0]]).to_flat_index():
                # the other set is a table
                tables = {"table", "tables"} & {*setting}
                mixed = {"another", "images"} <= {*setting} or "one set" in setting and tables
                if not mixed:
                    columns = dict(zip(columns_of[study], setting, strict=False))
                    metrics_of = found.setdefault((study, attack, setting), (columns, []))[1]
                    metrics_of += [metric] if metric not in metrics_of else []
    return found


def members_of(paper, study, seed):
    records = RECORDS.get(paper, 800)
    if study in BANKS:
        return membership.balanced_halves(records, 20, seed)[::2]
    return np.tile(np.arange(records) < records // 2, (10, 1))


def scores_of(paper, key, stand_in, seed):
    """Scores of an attack on ten targets, in which members lead by its strength in that study and setting; a tenth of the
    non-members stand out, too. A coin in its place leads by nothing, a constant says the same of all, the plain loss leads as
    the loss does, and a comparison with one reference by somewhat more."""
    study, attack, setting = key
    members = members_of(paper, study, seed)
    rng = np.random.default_rng([seed, crc32(repr(key).encode())])
    if attack == "Eq. 39":  # MATT and a small term
        return scores_of(paper, (study, "MATT", setting), stand_in, seed) + 0.02 * rng.normal(
            size=members.shape
        )
    if stand_in in (COIN, CONSTANT):
        return rng.normal(size=members.shape) * (stand_in == COIN)
    attack = LOSS_OF.get(paper, "MALT") if stand_in else attack
    weaker, stands = WEAKER | WEAKER_OF.get(paper, {}), STANDS_OF.get(paper, {})
    strength = STRENGTH | STRENGTH_OF.get(paper, {})
    lead = strength[attack] * np.prod([weaker.get(value, 1.0) for value in (*setting, study)])
    lead *= 1.3 if stand_in == ONE else 1
    lead *= np.prod(
        [factor for pair, factor in stands.items() if {*pair} <= {attack, study, *setting}]
    )
    out = lead * ~members * (rng.random(members.shape) < 0.1) * (-2 if attack in MISTAKEN else 2)
    if (attack, study) in SHARP:  # a share of the members by far, the others not at all
        out, lead = 0, 6 * (rng.random(members.shape) < 0.15 * lead)
    return rng.normal(size=members.shape) + lead * members - out


COIN, CONSTANT, LOSS, ONE = "a coin", "a constant", "the plain loss", "one reference"
LOSS_OF = {"calibration": "Orig", "curvature": "Yeom", "iha": "LOSS", "quantile": "Marginal"}


@cache
def result(paper, key, stand_in, seed):
    """All metrics that the rules of a paper ask for of an attack in a study and a setting, from one score."""
    (study, attack, _), (columns, asked) = key, named(paper)[key]
    found = rows(
        attack,
        asked,
        scores_of(paper, key, stand_in, seed),
        members_of(paper, study, seed),
        study in BANKS,
    )
    return found.assign(study=study, **columns)


def world(paper, replaced=(), only=None, seed=1, stand_in=COIN):
    """All results of a paper, or of the studies of one claim: as the paper has it, but for the attacks that are replaced."""
    studies = {study for study, _, _ in named(paper, only)}
    keys = [key for key in named(paper) if key[0] in studies]
    frames = [result(paper, key, stand_in if key[1] in replaced else "", seed) for key in keys]
    return pd.concat(frames, ignore_index=True)


def rows(attack, asked, scores, members, shared):
    if attack == "noise":  # known by itself, without an attack
        return metrics.by_repetition({attack: dict.fromkeys(asked, np.full(len(scores), 0.535))})
    ranks = [
        one for one in asked if one in metrics.ranking.CORES or "_at_fpr" in one or one == "tpr"
    ]
    named = [one.replace("tpr", "tpr_at_fpr=0.01") if one == "tpr" else one for one in ranks]
    # no shares of records
    near = [one for one in asked if one in ("slope", "rank correlation", "kappa", "excess")]
    how = {"shared": shared, "draws": 20}
    frames = [metrics.by_target({attack: scores}, members, named, **how)] if ranks else []
    frames = [frame.assign(metric=ranks) for frame in frames]  # the rate of "tpr" is a column
    for metric in near:  # Boltzmann's slope is minus one
        value = 2 * metrics.auc(scores, members) - 1 - (metric == "slope")
        frames.append(metrics.by_repetition({attack: {metric: value}}))
    # by a threshold from elsewhere
    if accuracies := [one for one in asked if one not in (*ranks, *near)]:
        called = (scores >= np.median(scores)).astype(float)
        called = metrics.by_target({attack: called}, members, ("auc",), **how)
        frames += [called.assign(metric=metric) for metric in accuracies]
    return pd.concat(frames, ignore_index=True)


NOISES = 50  # of attacks that find nothing; no claim names more than twenty results


@cache
def noises(records, shared):
    """Attacks that find nothing: of each, metric -> its ten rows, for all papers with so many records."""
    papers = [paper for paper in PAPERS if RECORDS.get(paper, 800) == records]
    asked = dict.fromkeys(
        metric
        for paper in papers
        for (study, attack, _), (_, metrics_of) in named(paper).items()
        for metric in metrics_of
        if (study in BANKS) == shared and attack != "noise"
    )
    rng = np.random.default_rng(100)
    members = members_of(papers[0], BANKS[0] if shared else None, 100)
    drawn = (rng.normal(size=members.shape) for _ in range(NOISES))
    frames = (rows("nothing", list(asked), scores, members, shared) for scores in drawn)
    return [dict(list(frame.groupby("metric"))) for frame in frames]


def worlds_of_noise(paper, claim, count):
    """Results of all that the rule of a claim names where no attack finds anything: each world has others of the `noises`."""
    rng, wanted = np.random.default_rng(100), named(paper, claim)
    if any(attack == "Eq. 39" for _, attack, _ in wanted):  # which follows from another's scores
        yield from (world(paper, STRENGTH, claim, seed) for seed in range(100, 100 + count))
        return
    known = {"noise": rows("noise", ["balanced_accuracy"], np.zeros(10), None, False)}
    labels = None
    for _ in range(count):
        numbers = rng.choice(NOISES, len(wanted), replace=False)
        parts = [
            known[attack]
            if attack == "noise"
            else noises(RECORDS.get(paper, 800), study in BANKS)[number][metric]
            for number, ((study, attack, _), (_, asked)) in zip(
                numbers, wanted.items(), strict=True
            )
            for metric in asked
        ]
        if labels is None:  # in which worlds do not differ
            names = [
                {"study": study, "attack": attack} | columns
                for (study, attack, _), (columns, asked) in wanted.items()
                for _ in asked
            ]
            labels = pd.concat(
                [part.assign(**columns) for part, columns in zip(parts, names, strict=True)],
                ignore_index=True,
            )
            # twice as fast to compare
            labels = labels.astype(dict.fromkeys(labels.select_dtypes("str"), object))
        yield labels.assign(
            **{
                column: np.concatenate([part[column].to_numpy() for part in parts])
                for column in ("value", "estimate")
            }
        )


def judged(paper, claim, frame):
    known = claims.claims(paper)[claim]
    return rules.judge(paper, claim, frame, {known["exhibit"]: known.get("needs", {})}).verdict


@pytest.mark.parametrize("paper", PAPERS)
def test_where_nothing_leaks_nothing_is_reproduced(paper):
    """Of twenty worlds of noise one may say so by chance, at the confidence of 95 %; four would two times in a thousand. Where
    none of the first eight does, the others are not played: a rule that says so in every second world has none among
    eight four times in a thousand."""
    for claim, known in claims.claims(paper).items():
        if rules.LIMITS & known.keys():
            continue
        times = 0
        for played, frame in enumerate(worlds_of_noise(paper, claim, 20)):
            if played == 8 and not times:
                break
            times += judged(paper, claim, frame) == claims.REPRODUCED
        assert times <= 3, f"{claim} is reproduced in {times} of 20 worlds without a leak"


# Claims that hold of the plain loss, too: what they say is about the loss itself, or about what a setting does to any attack.
# Of every other claim the attack that it is about must do more than the loss.
OF_THE_LOSS = {
    "audit": {"A4"},
    "banks": {"E1", "E5"},
    "bayes": {"C7m", "C9", "C10", "C11m", "C11s", "C12", "C13"},
    "calibration": {"C4", "C6", "C11", "C13s", "C16"},
    "compare": {"K10"},
    "curvature": {"C1", "C6", "C8", "C9", "C10"},
    "iha": {"C11", "C13", "C13l", "C15", "C16"},
    "quantile": {"C6", "C9", "C11"},
}


# Claims that a comparison with one reference passes: they say no more than that references help, or what is compared does.
OF_ONE_REFERENCE = {
    "audit": {"A6"},
    "bayes": {"C6", "C7", "C7r", "C8", "C11", "C16", "A1", "A4"},
    "calibration": {"C1", "C3", "C7", "C8", "C10", "C11c", "C12", "C13", "C14", "A7"},
    "iha": {"C8"},
    "quantile": {"C5", "C7"},
}


@pytest.mark.parametrize("paper", PAPERS)
def test_with_a_coin_in_the_place_of_the_attack_nothing_is_reproduced(paper):
    """And with the attack itself, in a world as the paper has it, every claim is. Where what it is compared with is no better
    than guessing, a coin is not ahead of that either. By chance a coin may be so in one world, not in two.
    A constant never passes; the plain loss and one reference do where the claim says no more of an attack."""
    for claim, known in claims.claims(paper).items():
        if "about" not in known:
            continue
        about = {known["about"]} if isinstance(known["about"], str) else {*known["about"]}
        verdict = judged(paper, claim, world(paper, only=claim))
        assert verdict == claims.REPRODUCED or "needs" in known, claim
        for coins in about, about | {one for one, _, _ in rules.named_results(known["rule"])}:
            found = (judged(paper, claim, world(paper, coins, claim, seed)) for seed in (1, 2))
            assert not all(verdict == claims.REPRODUCED for verdict in found), (claim, coins)
        for baseline in CONSTANT, LOSS, ONE:
            found = [
                judged(paper, claim, world(paper, about, claim, seed, baseline)) for seed in (1, 2)
            ]
            passes = set(found) == {claims.REPRODUCED}
            listed = claim in [
                *(OF_THE_LOSS.get(paper, ()) if baseline != CONSTANT else ()),
                *(OF_ONE_REFERENCE.get(paper, ()) if baseline == ONE else ()),
            ]
            assert listed or not passes, (claim, baseline)


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
    one, two = exhibits.printed("table1"), exhibits.printed("table2", "table3", "table4")
    low = exhibits.printed("table5")
    printed = [*one.itertuples(), *two[two["views"] == "1 view"].itertuples(), *low.itertuples()]
    where = {"study": "attacks", "references": "64 references"}
    frames = [of_row(row, **where, data=row.data, views=row.views) for row in printed]
    known = exhibits.notebooks().sort_values("size").assign(value=lambda rows: 100 * rows["paper"])
    large = known[(known["kind"] == "random") & (known["size"] > 20_000)]
    for study, rows in (("sizes", known), ("large sizes", large)):
        frames += [
            of_row(row, study=study, kind=row.kind, size=row.size) for row in rows.itertuples()
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
    frame = world("calibration", only="C5")
    number = rules.number_of("calibration", "C5", frame)
    assert number == -rules.number_of("calibration", "C5", frame, -1) != 0
    with pytest.raises(MiaError, match="A3 is asked in several settings"):
        rules.number_of("calibration", "A3", frame)
    for none in (
        frame.assign(estimate=frame["estimate"] * np.nan),
        frame[:0],
    ):  # not resolved, not there
        assert rules.number_of("calibration", "C5", none, -1) == claims.NOT_RUN
