"""Numbers a model gives a record: the raw material of every attack.

Each function takes an ensemble of M models and N records and returns an array [M, N] (logits and probabilities
[M, N, K]). One pass over the records gives all scalar signals of a model; they are kept in the store, so models are
only trained or loaded when a signal is not there yet. Outputs are float32, but what is derived from them is computed
in float64: in float32 the loss of a confident record rounds to zero and the ranking of members is lost.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import logsumexp

from mia_lib import models as architectures
from mia_lib import store, training
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.training import Ensemble

BATCH = 500


@torch.no_grad()
def model_outputs(model: torch.nn.Module, x: np.ndarray) -> np.ndarray:
    """Logits float32 [N, K] of one model, in evaluation mode, batch by batch."""
    model.eval()
    return np.concatenate([model(architectures.to_input(x[i:i + BATCH])).numpy() for i in range(0, len(x), BATCH)])


@torch.no_grad()
def features(model: torch.nn.Module, x: np.ndarray) -> np.ndarray:
    """Penultimate activations float32 [N, F] of one model."""
    model.eval()
    parts = [architectures.features(model, architectures.to_input(x[i:i + BATCH])) for i in range(0, len(x), BATCH)]
    return torch.cat(parts).numpy()


def scalars(logits: np.ndarray, labels: np.ndarray, loss: str = "cross_entropy") -> dict[str, np.ndarray]:
    """Every scalar signal from logits.

    With p the softmax of the logits z, y the label and j the best other class:
    loss -log p_y (or 1/2 ||z - onehot||^2); logit_scaled_confidence log(p_y / (1 - p_y)) (Carlini et al. 2022);
    hinge z_y - z_j; max_confidence max p; entropy -sum p log p; correctness 1 if argmax z = y.

    Args:
        logits: [..., N, K].
        labels: int [N].

    Returns:
        name -> float32 [..., N].
    """
    z = np.asarray(logits, np.float64)
    one_hot = np.arange(z.shape[-1]) == np.asarray(labels)[:, None]
    truth = (z * one_hot).sum(-1)
    others = np.where(one_hot, -np.inf, z)
    log_p = z - logsumexp(z, -1, keepdims=True)
    cross_entropy = np.logaddexp(0.0, logsumexp(others, -1) - truth)  # -log p_y, without losing what is next to zero
    columns = {
        "loss": cross_entropy if loss == "cross_entropy" else 0.5 * ((z - one_hot) ** 2).sum(-1),
        "logit_scaled_confidence": truth - logsumexp(others, -1),
        "hinge": truth - others.max(-1),
        "max_confidence": np.exp(log_p.max(-1)),
        "entropy": -(np.exp(log_p) * log_p).sum(-1),
        "correctness": z.argmax(-1) == np.asarray(labels),
    }
    return {name: column.astype(np.float32) for name, column in columns.items()}


def _evaluate_task(architecture, shape, classes, arrays, path, labels, loss, full):
    model = architectures.build(architecture, shape, classes, seed=0)
    model.load_state_dict({k: torch.from_numpy(np.array(a)) for k, a in arrays.items() if k != "history"})
    logits = model_outputs(model, np.load(path, mmap_mode="r"))
    return {"logits": logits} if full else scalars(logits, labels, loss)


def _spec(models: Ensemble, records: Dataset, index: int, full: bool) -> dict:
    return {"kind": "logits" if full else "signals", "model": store.key(models.spec(index)),
            "records": records.fingerprint}


def _gather(models: Ensemble, records: Dataset, name: str, full: bool = False) -> np.ndarray:
    if records.shape != models.records.shape:
        raise MiaError(f"records of {records.name} have shape {records.shape}; the models were trained on "
                       f"{models.records.shape}.")
    entries = {m: store.look_up(_spec(models, records, m, full)) for m in range(len(models))}
    missing = [m for m, entry in entries.items() if entry is None]
    if missing:
        models.fit()
        path = training._data_file(records)
        tasks = [(models.config.architecture, models.records.shape, len(models.records.classes), models.arrays(m), path,
                  records.y, models.config.loss, full) for m in missing]

        def finished(position: int, arrays: dict) -> None:
            m = missing[position]
            entries[m] = store.keep(_spec(models, records, m, full), arrays)

        training.run_tasks(_evaluate_task, tasks, finished, f"signals of {models.label}", models.workers, models.executor)
    return np.stack([entries[m].arrays[name] for m in range(len(models))])


def loss(models: Ensemble, records: Dataset) -> np.ndarray:
    """Loss of each record under each model, float32 [M, N], in nats for cross-entropy."""
    return _gather(models, records, "loss")


def logit_scaled_confidence(models: Ensemble, records: Dataset) -> np.ndarray:
    """log(p_y / (1 - p_y)), float32 [M, N] (Carlini et al. 2022, section V-B)."""
    return _gather(models, records, "logit_scaled_confidence")


def hinge(models: Ensemble, records: Dataset) -> np.ndarray:
    """Logit of the true class less the best other one, float32 [M, N]."""
    return _gather(models, records, "hinge")


def max_confidence(models: Ensemble, records: Dataset) -> np.ndarray:
    """Largest class probability, float32 [M, N]; needs no label."""
    return _gather(models, records, "max_confidence")


def entropy(models: Ensemble, records: Dataset) -> np.ndarray:
    """Entropy of the predicted distribution in nats, float32 [M, N]; needs no label."""
    return _gather(models, records, "entropy")


def correctness(models: Ensemble, records: Dataset) -> np.ndarray:
    """Whether the predicted class is the label, bool [M, N]."""
    return _gather(models, records, "correctness") > 0.5


def logits(models: Ensemble, records: Dataset) -> np.ndarray:
    """Outputs before the softmax, float32 [M, N, K]."""
    return _gather(models, records, "logits", full=True)


def probabilities(models: Ensemble, records: Dataset) -> np.ndarray:
    """Softmax of the logits, float32 [M, N, K]."""
    z = logits(models, records).astype(np.float64)
    return np.exp(z - logsumexp(z, -1, keepdims=True)).astype(np.float32)
