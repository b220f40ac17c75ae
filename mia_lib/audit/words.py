"""The sentences of an audit, chosen by its numbers."""

from __future__ import annotations

from mia_lib.audit.attacks import ATTACKS, HALVES
from mia_lib.audit.given import Given
from mia_lib.audit.judging import ALONE, Headline, Judgement, Rate
from mia_lib.audit.planning import RUNS, Plan, size
from mia_lib.audit.remedies import AS_IT_IS, Price
from mia_lib.metrics import Interval


def percent(value: float, digits: int = 1) -> str:
    """Of a fraction: "1 %", "0.05 %"."""
    return f"{100 * value:.{digits}f} %".replace(".0 %", " %") if 100 * value >= 10**-digits or not value else (
        f"{100 * value:.2g} %")


def span(found: Interval, digits: int = 3) -> str:
    """An estimate with its interval: "0.612 [0.580, 0.644]"."""
    return f"{found.value:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def rate(one: Rate) -> str:
    """A true positive rate for a table."""
    if not one.resolved:
        return "below resolution"
    if one.tied and not one.found.value:
        return "ties: no such threshold"
    return f"{percent(one.found.value)} [{percent(one.found.low)}, {percent(one.found.high)}]"


def chance(one: Rate) -> str:
    """What a rate would be without a leak."""
    return percent(one.chance) if one.resolved else ""


def warnings(given: Given, judged: Judgement) -> dict[str, str]:
    """Why the numbers of an audit may not mean what they seem to: in a few words, and in a sentence or two."""
    alone, right, said = judged.blind, judged.right, {}
    if alone.apart:
        said["Members and non-members differ without the model."] = (
            f"Members and non-members can be told apart without the model (AUC {span(alone.auc)}), so what follows "
            f"does not measure what the model gives away. Find records of one and the same distribution first.")
    if right.guessed:
        said["The model knows its members no better than a guess."] = (
            f"The model is right about {right.members:,} of {len(given.members):,} members, no more, as far as can be "
            f"told, than the {right.guess:,.1f} that labels drawn at random would give. Either it learnt nothing of them, "
            f"or the columns of its outputs, the labels or the pixels are not as it knows them, and what follows says "
            f"little. Look at that first.")
    if judged.below:
        said["Members score below non-members."] = (
            f"Members score below non-members: the loss has an AUC of {span(judged.loss.auc)}, where chance is 0.5. Were the "
            f"sets exchanged, or are the non-members easier?")
    return said


def answer(given: Given, judged: Judgement) -> str:
    """What was found, in a few sentences, warnings first."""
    warned = list(warnings(given, judged).values())
    return " ".join(warned if judged.blind.apart else [*warned, _found(judged)])


def _found(judged: Judgement) -> str:
    """What attacks found, where the control found nothing."""
    headline = judged.headline
    ahead = headline.auc.low > 0.5
    on_half = f"{headline.name}, chosen on one half of the records, has an AUC of {span(headline.auc)} on the other"
    if judged.leak and ahead:
        return f"The model gives its members away: {on_half}, where chance is 0.5."
    if judged.leak:
        found = ", ".join(one.name for one in judged.attacks if one.p is not None and one.p < 1 - judged.level)
        return (f"The model gives its members away to at least one attack ({found}), all attacks and tests accounted for; "
                f"{on_half}, whose interval {'holds' if headline.auc.high >= 0.5 else 'lies below'} 0.5.")
    if ahead:
        return (f"With all attacks and tests accounted for nothing is beyond chance, though {on_half}, alone above the 0.5 of "
                f"chance. More records or more references may settle it.")
    found = "places members above non-members" if judged.below else "found anything beyond chance"
    return (f"No attack {found}: {on_half}. That is no proof of safety: a stronger attack, more "
            f"records or more references may find what these did not.")


def low(headline: Headline) -> str:
    """What the headline attack finds at few false positives."""
    said = []
    for one in headline.rates:
        at = f"at a false positive rate of {percent(one.fpr)}"
        if not one.resolved:
            continue
        if one.tied and not one.found.value:
            said.append(f"{at} no threshold stands, for records tie")
        else:
            where = ("above" if one.found.low > one.chance else "below" if one.found.high < one.chance else "not told from")
            said.append(f"{at} it finds {percent(one.found.value)} of the members [{percent(one.found.low)}, "
                        f"{percent(one.found.high)}], {where} the {percent(one.chance)} of chance")
    unresolved = [percent(one.fpr) for one in headline.rates if not one.resolved]
    if unresolved:
        said.append(f"at a false positive rate of {' or '.join(unresolved)} this half of the non-members resolves nothing")
    return "; ".join(said)[0].upper() + "; ".join(said)[1:] + "."


def shows(given: Given, planned: Plan, judged: Judgement) -> list[str]:
    """What an audit does and does not show, a sentence an item."""
    said, alone = [], judged.blind
    if alone.apart:
        said.append(f"Members and non-members differ by themselves: without the model they are told apart with an AUC of "
                    f"{span(alone.auc)} (p = {alone.p:.1g}). An attack may do no more than that.")
        if alone.beyond is not None:
            how = ("does better than" if alone.beyond.low > 0 else "does worse than" if alone.beyond.high < 0 else
                   "cannot be told from")
            said.append(f"On the same records {judged.headline.name} {how} this control (difference in AUC "
                        f"{span(alone.beyond)}).")
    else:
        left = f"one with an AUC of up to {alone.auc.high:.3f} is not excluded, nor any" if alone.auc.high > 0.5 else (
            "nothing excludes one")
        said.append(f"Members and non-members could not be told apart without the model (AUC {span(alone.auc)}, p = "
                    f"{alone.p:.2g}, where {ALONE:g} would count). So nothing speaks for a difference of the records that a "
                    f"simple classifier sees; {left} that it cannot see, such as labels that were made in another way. "
                    f"Attacks would find that, too.")
    if judged.right.guessed:
        said.append(f"The model is right about {judged.right.members:,} of {len(given.members):,} members, and labels drawn "
                    f"at random would give {judged.right.guess:,.1f} (p = {judged.right.p:.2g}, where {ALONE:g} would "
                    f"count). Where records, labels or columns are not as the model knows them, nothing here is about it.")
    if judged.below:
        said.append("Attacks look for members that score above non-members; here they score below. Sets that were exchanged "
                    "look like this, and so do non-members that are easier.")
    if judged.leak is None:
        said.append("Whether the model gives anything away is not said: what attacks find may be the difference of the "
                    "records.")
    elif judged.leak:
        said.append("The finding holds for all attacks together: of both tests of each attack, corrected by Holm's method, at "
                    f"least one is below {1 - judged.level:.2g}.")
    else:
        said.append("Nothing found is not nothing there. These are the attacks that ran, with these references, on these "
                    "records; each gives a lower limit of what the model gives away.")
    said.append("One model was attacked. Another one trained by the same recipe may give away more or less; intervals here "
                "cover the records alone.")
    unresolved = [one for one in judged.attacks[0].rates if not one.resolved]
    if unresolved:
        said.append(f"{len(given.non_members):,} non-members make no rate between 0 and "
                    f"{percent(1 / len(given.non_members), 2)}: nothing is said of "
                    f"{' and '.join(percent(one.fpr) for one in unresolved)}. Members who are exposed at such rates may be "
                    "there all the same.")
    if planned.references:
        what = ("of the records judged themselves, as one who holds the candidates could "
                "train" if planned.variant == HALVES else
                "of public records, none of them judged")
        said.append(f"References were {planned.references} models trained on "
                    f"{'halves ' if planned.variant == HALVES else 'parts '}{what}. Attacks with references gain with "
                    f"their number up to some tens. Each had {size(given, planned.variant):,} records: if the model had many "
                    f"more, it overfits less than they do, and they find less than references of its size would.")
    else:
        said.append("No references were trained, so each record was judged without knowing how hard it is. Attacks with "
                    "references, which know that, may find more.")
    wanting = [step.name for step in planned.steps if step.state != RUNS and step.name in ATTACKS]
    if wanting:
        said.append(f"Not run: {', '.join(wanting)}; the plan says why.")
    said.append("Members and non-members were taken at their word. Were some non-members trained on after all, every "
                "number here would be too low.")
    return said


def _records(judged: Judgement) -> str:
    """What to say before numbers that count a difference of the records, too."""
    return "Members and non-members differ without the model, which counts here, too. " if judged.blind.apart else ""


def agreement(judged: Judgement) -> str:
    """What two attacks of different families agree on."""
    one = judged.agreement
    if one is None:
        return "Attacks of one family alone ran, which see the same numbers: their agreement would say nothing."
    said = (f"{_records(judged)}{one.first[0].upper()}{one.first[1:]} and {one.second} go by different things. Each at a "
            f"false positive rate of {percent(one.level)}, they both call {len(one.index)} members, where {one.expected:.1f} "
            f"would be expected if they called independently (p = {one.p:.1g}).")
    others = (f"Of the non-members they both call {one.others}, where {one.others_expected:.1f} would be expected (p = "
              f"{one.others_p:.1g}).")
    if one.p >= 1 - judged.level:
        return f"{said} That is no more than chance. {others}"
    if one.others_p < 1 - judged.level:
        return (f"{said} {others} So part of their agreement is about records that are easy for every model, and not about "
                "membership.")
    return (f"{said} {others} There no agreement could be told from chance, which does not show that what they share is about "
            "membership alone.")


def exposure(given: Given, judged: Judgement) -> str:
    """How many members stand out."""
    one = judged.exposed
    return (f"{_records(judged)}At a false positive rate of {percent(one.level)}, {judged.headline.name} calls "
            f"{one.called:,} of {len(given.members):,} members; without a leak {one.expected:.1f} would be expected. Of "
            "records that are called members, some are called by chance: a single row is a suspicion.")


def groups(judged: Judgement, kind: str) -> str:
    """How groups or classes differ."""
    found = [one for one in judged.groups if one.kind == kind]
    able = [one for one in found if one.auc is not None]
    few = len(found) - len(able)
    said = f"{_records(judged)}{len(able)} of {len(found)} {'classes' if kind == 'class' else 'groups'} have records enough"
    if not able:
        return f"{said}."
    above = [one for one in able if one.p < 1 - judged.level]
    said += (f". Above chance by rank tests, with a confidence of {percent(judged.level)} for all of them together: "
             f"{', '.join(one.name for one in above) or 'none'}. Intervals of few records are rough.")
    return said + (f" The other {few} are not judged." if few else "")


def remedy(price: Price) -> str:
    """What a change brought, in words."""
    if price.failed:
        return f"could not be trained: {price.failed}"
    if price.less is None:
        return "what the others are compared with"
    leak = ("this training leaked less" if price.less.low > 0 else "this training leaked more" if price.less.high < 0 else
            "no change in the leak that could be told")
    cost = ("cost accuracy" if price.price.low > 0 else "gained accuracy" if price.price.high < 0 else
            "cost no accuracy that could be told")
    return f"{leak}, {cost}"


def to_try(given: Given, planned: Plan, prices: tuple[Price, ...], accuracy: float) -> str:
    """What to try, or where to find out; first whether the recipe makes a model as good as the audited one."""
    if prices:
        helped = [one.name for one in prices if one.less is not None and one.less.low > 0]
        again = next((one.accuracy for one in prices if one.name == AS_IT_IS and one.accuracy is not None), None)
        other = "" if again is None or again.low <= accuracy <= again.high else (
            f"The recipe as it was given makes a model that is right about {percent(again.value)} of the non-members, and the "
            f"audited one is right about {percent(accuracy)}. Look whether the recipe is the model's: references are trained "
            "by it, and find little if it is not. ")
        said = (f"{other}Each was trained once on the same members and judged by the loss alone, beside {AS_IT_IS}; intervals "
                "cover the records and not the chance of training, so train a change again before you rely on it. ")
        return said + (f"Less was given away by the training with {', with '.join(helped)}." if helped else
                       "None gave away less by more than the chance of these records.")
    why = next(step.why for step in planned.steps if step.name.startswith("what to try"))
    return (f"Not measured here ({why}). What is known to lower what such attacks find: more weight decay, fewer epochs, "
            "augmentation of images, and DP-SGD, which alone bounds what any attack can find. Each has its price in "
            "accuracy; a training recipe lets this page measure it.")


def epsilon(given: Given, judged: Judgement) -> str:
    """The lower bound, with its conditions."""
    best = max((one for one in judged.attacks if one.epsilon is not None), key=lambda one: one.epsilon.bound)
    bound = (f"The largest is {best.epsilon.bound:.2f}, by {best.name}" if best.epsilon.bound > 0 else
             "None is above 0: no epsilon is refuted")
    condition = (f" With delta = {given.delta:g} above 0 this is no confidence bound of one training run, which may be the "
                 "rare one that gives everything away." if given.delta else "")
    return (f"{_records(judged)}If the training were (epsilon, {given.delta:g})-differentially private, no attack could "
            f"have rates with TPR > exp(epsilon) FPR + delta, nor, in calling non-members, with 1 - FPR > "
            f"exp(epsilon) (1 - TPR) + delta, which often gives the larger bound. {bound}. All bounds hold together with a "
            f"confidence of {percent(given.confidence)}, one-sided, each with a threshold chosen on halves of the records "
            f"that do not judge it. They suppose that records were drawn into the training set independently, and that each "
            f"is a trial of its own, which records of one training run are not strictly.{condition}")
