"""How well scores tell members from non-members: the ROC curve and its summaries, with intervals."""

from mia_lib.metrics.estimates import Estimate, by_repetition, by_target, estimate, summary
from mia_lib.metrics.interval import Interval, holm, t_interval
from mia_lib.metrics.privacy import EpsilonBound, OneRunBound, epsilon_lower_bound, epsilon_one_run, one_run_p_value
from mia_lib.metrics.ranking import (
    accuracy_at_threshold,
    auc,
    average_precision,
    average_precision_non_members,
    balanced_accuracy,
    best_threshold,
    chance_tpr,
    conformal_tpr_at_fpr,
    pinball_loss,
    precision,
    precision_at_fpr,
    rehearsed_accuracy,
    resolves,
    roc_curve,
    tally,
    tpr_at_fpr,
)
from mia_lib.metrics.resampling import bootstrap, compare, evaluate, intervals

__all__ = ["EpsilonBound", "Estimate", "Interval", "OneRunBound", "accuracy_at_threshold", "auc", "average_precision",
           "average_precision_non_members", "balanced_accuracy", "best_threshold", "bootstrap", "by_repetition", "by_target",
           "chance_tpr", "compare", "conformal_tpr_at_fpr", "epsilon_lower_bound", "epsilon_one_run", "estimate", "evaluate",
           "holm", "intervals", "one_run_p_value", "pinball_loss", "precision", "precision_at_fpr", "rehearsed_accuracy",
           "resolves", "roc_curve", "summary", "t_interval", "tally", "tpr_at_fpr"]
