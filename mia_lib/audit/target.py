"""The model that is audited, as a function from records to outputs, and whether these are what they were declared to be.

A model is a network, a program of `torch.export`, or any function from records to outputs: a scikit-learn model's
`predict_proba`, a session of ONNX Runtime, an endpoint. What a function answers is kept batch by batch, for it may be slow,
cost money, or fail in the middle.
"""

from __future__ import annotations

import hashlib
import secrets
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax
from torch import nn

from mia_lib import models as architectures
from mia_lib import signals, store
from mia_lib.audit.options import AuditOptions
from mia_lib.checks import (
    are_probabilities,
    as_array,
    explain_not_logits,
    explain_not_probabilities,
    explain_single_output,
    take_logits,
)
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.signals import outputs as evaluation

BATCH = 1000  # records of a function's call
ASKED = 32  # records that the first look asks about
COARSE = 1e-4  # least probability of a model that rounds
SAME = 1e-3  # of the largest output: what rounding may change from one call to the next
AGAIN, KEPT = 100, 2e-5  # kept answers that are asked for again, and what of the largest may differ beside what batches change


@dataclass
class Queries:
    """What was asked: records, each as often as it was asked about, answers that were kept aside; and what was `unpacked`, the
    types of objects whose `logits` were taken."""

    records: int = 0
    unpacked: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class Target:
    """The model that is audited.

    Attributes:
        model: as it was given.
        outputs: what signals are made of, "logits" or "probabilities".
        classes: K.
        places: int [C], the class of each of the model's columns, where these are not the K classes in their order.
        labels: whether it is a function that predicts classes, which count as probabilities of zero and one.
        scaling: of images for a network or a program, see `models.to_input`.
        keep: folder for the answers of a function.
        queries: what it was asked so far.
    """

    model: nn.Module | torch.export.ExportedProgram | Callable
    outputs: str
    classes: int
    places: np.ndarray | None = None
    labels: bool = False
    scaling: str | tuple | None = None
    keep: Path | None = None
    queries: Queries = field(default_factory=Queries)
    _signals: dict = field(default_factory=dict, repr=False)
    _compared: set = field(default_factory=set, repr=False)

    @property
    def kind(self) -> str:
        """ "network", "program" or "function"."""
        if isinstance(self.model, nn.Module):
            return "network"
        return "program" if isinstance(self.model, torch.export.ExportedProgram) else "function"

    @property
    def parameters(self) -> int | None:
        """P; None where it cannot be known."""
        return None if self.kind == "function" else sum(w.numel() for w in self._module.parameters())

    @property
    def fed(self) -> str | tuple:
        """How images are fed to a network or a program."""
        known = None if self.kind == "function" else architectures.fed(self.model)
        return next((scaling for scaling in (self.scaling, known) if scaling is not None), "-1 to 1")

    @cached_property
    def _module(self) -> nn.Module:
        return self.model.module() if self.kind == "program" else self.model

    @cached_property
    def folder(self) -> Path:
        """Where a function's answers are kept."""
        return self.keep or store.cache_dir() / "answers" / secrets.token_hex(6)

    def ask(self, x: np.ndarray, again: bool = False) -> np.ndarray:
        """Outputs [N, K], checked.

        Args:
            x: in the form of `Dataset.x`. again: whether a function is asked whatever it answered before; that is left as it
                is.

        Raises:
            MiaError: outputs of another form, a function that fails.
        """
        if self.kind == "network":
            self.queries.records += len(x)
            answers = self._through_network(x)
        elif self.kind == "program":
            answers = self._through_program(x)
        else:
            answers = self._through_function(x, again)
        answers = check_form(answers, len(x), self.classes if self.places is None else len(self.places))
        if self.places is None:
            return answers
        whole = np.full((len(x), self.classes), 0 if self.outputs == "probabilities" else -np.inf, answers.dtype)
        whole[:, self.places] = answers  # a class that the model does not know has no probability
        return whole

    def _unpacked(self, answer) -> np.ndarray:
        """What a model returned as an array; `logits` of a dictionary or an object."""
        logits = take_logits(answer)
        if logits is not answer:
            self.queries.unpacked.add(type(answer).__name__)
        elif isinstance(answer, dict) or isinstance(answer, tuple) and len(answer) and np.ndim(answer[0]) == 2:
            part = "[0]" if isinstance(answer, tuple) else f"[{next(iter(answer), 'logits')!r}]"
            raise MiaError(f"outputs are a {type(answer).__name__} of {len(answer)}: an array [N, K] is needed. Wrap the "
                           f"model: lambda x: model(x){part}.")
        return as_array(logits)

    def _through_network(self, x: np.ndarray) -> np.ndarray:
        try:
            return signals.model_outputs(self.model, x, self.scaling)
        except MiaError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError, KeyError) as error:
            half = sorted({str(weight.dtype)[6:] for weight in self.model.parameters()} & {"float16", "bfloat16"})
            remedy = (f"Its parameters are {' and '.join(half)}, and records come in float32: give model.float()." if half
                      else "Give the network that was trained on such records, or wrap it in a function that prepares them.")
            raise MiaError(f"model = {type(self.model).__name__} does not take records of shape {x.shape[1:]} "
                           f"({_first_line(error)}). {remedy}") from error

    def _through_program(self, x: np.ndarray) -> np.ndarray:
        parts = []
        self.queries.records += len(x)
        with torch.no_grad():
            for start in range(0, len(x), 500):
                part = evaluation.inputs(x, start, min(start + 500, len(x)), evaluation.device_of(self._module),
                                         torch.float32, self.fed)
                try:
                    parts.append(self._unpacked(self._module(part)))
                except MiaError:
                    raise
                except Exception as error:
                    raise MiaError(
                        f"model, a torch.export program, does not take {len(part)} records of shape "
                        f"{tuple(part.shape[1:])} ({_first_line(error)}). Export it for any number of records: "
                        f"torch.export.export(model, (x,), dynamic_shapes=({{0: torch.export.Dim.AUTO}},)).") from error
        return np.concatenate(parts)

    def _through_function(self, x: np.ndarray, again: bool) -> np.ndarray:
        keep = None if again else self._file(x)
        if keep is not None:
            self.compare(x)
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # one answer for all, which `check_declared` refuses
                return signals.from_function(self._answer, x, self.outputs, BATCH, keep)
        except MiaError as problem:
            if getattr(problem, "answered", None) is None or keep is None:
                raise
            raise MiaError(f"{problem} In an audit keep is the folder of that file: "
                           f"keep={str(self.folder)!r}.") from problem

    def _answer(self, part: np.ndarray) -> np.ndarray:
        self.queries.records += len(part)
        answers = self._unpacked(self.model(part))
        return one_hot(answers, len(part), self.classes) if self.labels else answers

    def _file(self, x: np.ndarray) -> Path:
        return self.folder / f"{store.fingerprint(x)[:32]}.npz"

    def compare(self, x: np.ndarray) -> None:
        """Refuse answers from an earlier call that the model does not give now; some, drawn at random, are asked for again.

        Raises:
            MiaError: answers of another model.
        """
        path = self._file(x)
        if path in self._compared:
            return
        try:
            with np.load(path, allow_pickle=False) as stored:
                kept = stored["answers"].astype(np.float64)
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
            kept = np.empty(0)  # not there, or damaged, which `signals.from_function` says
        some = np.sort(np.random.default_rng(0).choice(len(kept), min(AGAIN, len(kept)), replace=False))
        if len(some):
            now, half = (signals.from_function(self._answer, x[rows], self.outputs, BATCH).astype(np.float64)
                         for rows in (some, some[:max(1, len(some) // 2)]))
            if not _same(kept[some], now, KEPT * _size(now) + 4 * _apart(now[:len(half)], half)):
                raise MiaError(f"keep = {str(self.folder)!r} holds answers that the model does not give now: they are of "
                               f"another model. Give another folder, or delete it.")
        self._compared.add(path)

    def scalars(self, records: Dataset, loss: str) -> dict[str, np.ndarray]:
        """Every scalar signal of records, [N], their `probabilities` and `outputs`, [N, K]; each is asked about once."""
        key = records.fingerprint, loss
        if key not in self._signals:
            answers = check_declared(self.ask(records.x), self.outputs, loss)
            probabilities = answers if self.outputs == "probabilities" else softmax(answers.astype(np.float64), 1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # rounded probabilities, which the page counts as ties
                if self.outputs == "logits" and (np.isfinite(answers).all() or loss == "squared_error"):
                    scalar = signals.scalars(answers, records.y, loss)
                else:  # logits of -inf are the logarithms of probabilities of zero
                    scalar = signals.from_probabilities(probabilities, records.y, loss, _floor(probabilities))
            self._signals[key] = {**scalar, "probabilities": probabilities, "outputs": answers}
        return self._signals[key]

    @property
    def fingerprint(self) -> str:
        """Hash of all that it holds, of a function nothing: its outputs tell."""
        if self.kind == "function":
            return "function"
        digest = hashlib.sha256(repr((self.kind, str(self.scaling))).encode())
        for name, value in self._module.state_dict().items():
            digest.update(f"{name}{value.dtype}{tuple(value.shape)}".encode())
            digest.update(np.ascontiguousarray(value.detach().cpu().double().numpy()).data)
        return digest.hexdigest()


def check_model(model, classes: Sequence[str], options: AuditOptions, scaling: str | tuple | None) -> Target:
    """A model as it may be audited.

    Args:
        classes: names of the K classes. options: what the audit was told. scaling: of images, None where it is not known.

    Raises:
        MiaError: something else than a model, a network in training mode, columns that are no classes.
    """
    if isinstance(model, type):
        raise MiaError(f"model = {model.__name__} is a class: give a model that was trained, {model.__name__}(...) with "
                       f"its weights loaded.")
    if isinstance(model, str | Path):
        raise MiaError(f"model = {str(model)!r} is text: give the network or the function itself. The command line reads "
                       "files: `mia audit my_module:factory --state weights.safetensors ...`.")
    if isinstance(model, dict):
        raise MiaError(f"model is a dictionary of {len(model)} entries, as a state_dict is: build the network and give it "
                       "these weights, network.load_state_dict(state); network.eval().")
    if isinstance(model, bytes):
        raise MiaError("model is bytes, as of a pickle, which are not read here. Load it yourself where you trust it, and "
                       "give the network or its predict function.")
    network = isinstance(model, nn.Module | torch.export.ExportedProgram)
    if not network and not callable(model):
        ways = [name for name in ("predict_proba", "decision_function", "predict") if hasattr(model, name)]
        remedy = (f"Give model.{ways[0]}" + (" and outputs='probabilities'." if ways[0] == "predict_proba" else ".")
                  if ways else "Give a torch.nn.Module, a torch.export program or a function from records to outputs [N, "
                               "K].")
        raise MiaError(f"model is of type {type(model).__name__}, which cannot be called. {remedy}")
    if isinstance(model, nn.Module) and not isinstance(model, torch.fx.GraphModule):
        training = [name or type(model).__name__ for name, part in model.named_modules() if part.training]
        if training:
            raise MiaError(f"model is in training mode ({', '.join(training[:3])}{', ...' if training[3:] else ''}): "
                           f"dropout and batch normalisation would make its outputs random. Call model.eval() first.")
    labels = options.outputs == "labels"
    if labels and network:
        raise MiaError("outputs = 'labels' is for a function that predicts classes, and a network says more: give "
                       "outputs='logits'.")
    return Target(model, "probabilities" if labels else options.outputs, len(classes),
                  None if labels else column_places(model, options.columns, classes), labels, scaling,
                  None if options.keep is None else Path(options.keep))


def column_places(model, columns: Sequence | None, classes: Sequence[str]) -> np.ndarray | None:
    """The class of each of a model's columns, int [C]; None where they are all classes in their order, or nothing is known.

    Args:
        model: of a method of a scikit-learn estimator its `classes_` are read. columns: names or numbers of the classes, which
            count before these. classes: names of the K classes.

    Raises:
        MiaError: `columns` that are no classes, or one twice.
    """
    known = columns if columns is not None else getattr(getattr(model, "__self__", None), "classes_", None)
    if known is None or columns is None and isinstance(known, list):  # of several outputs
        return None
    known = np.asarray(known).tolist()
    numbers = all(isinstance(name, int) and 0 <= name < len(classes) for name in known)
    places = known if numbers else [classes.index(str(name)) for name in known if str(name) in classes]
    if len(set(places)) < len(known):
        if columns is None:
            return None
        raise MiaError(f"columns = {known}: each must be one of the records' classes, {', '.join(map(str, classes))}, and "
                       "stand once, in the order of the model's columns.")
    return None if places == list(range(len(classes))) else np.array(places, int)


def one_hot(answers: np.ndarray, records: int, classes: int) -> np.ndarray:
    """Predicted classes as probabilities of zero and one, [n, K].

    Raises:
        MiaError: something else than a class a record.
    """
    if answers.shape != (records,) or answers.dtype.kind not in "iub" or not ((answers >= 0) & (answers < classes)).all():
        raise MiaError(f"outputs = 'labels', but the model gives {answers.dtype} of shape {answers.shape} for {records} "
                       f"records: a class from 0 to {classes - 1} a record is needed, whole numbers [N], in the order of "
                       "Dataset.classes.")
    return np.eye(classes)[answers.astype(int)]


def _floor(p: np.ndarray) -> float | None:
    """What a probability of zero counts as, where they are coarse: half of the least that is none, as of trees."""
    least = p[p > 0].min()
    return min(float(least) / 2, 0.1) if least > COARSE else None


def check_form(answers: np.ndarray, records: int, columns: int) -> np.ndarray:
    """Outputs that are numbers [N, C] without NaN; of a function `signals.from_function` has looked before.

    Raises:
        MiaError: anything else, with what to do.
    """
    if answers.shape == (records, 1):
        remedy = explain_single_output(answers, "torch.cat([0 * s, s], 1) with outputs='logits'",
                            "torch.cat([1 - s, s], 1) with outputs='probabilities'")
        raise MiaError(f"outputs have shape {answers.shape}, one column: [N, K] is needed. Give a network or a function "
                       f"around the model. {remedy}")
    if answers.ndim != 2 or len(answers) != records:
        raise MiaError(f"outputs have shape {answers.shape} for {records} records: [{records}, {columns}] is needed, a row "
                       f"a record in their order.")
    if answers.shape[1] != columns:
        raise MiaError(f"outputs have {answers.shape[1]} columns, but {columns} are needed, one for each class of the "
                       "records, in the order of Dataset.classes. A model that never saw some class says which it knows by "
                       "columns=model.classes_, their names or numbers in the order of its columns, or puts them where they "
                       f"belong: p = np.zeros((len(x), {columns})); p[:, model.classes_] = model.predict_proba(x).")
    bad = ~np.isfinite(answers) if answers.dtype.kind == "f" else np.zeros(answers.shape, bool)
    bad &= ~(answers == -np.inf) | (answers == -np.inf).all(1, keepdims=True)  # the logarithm of a probability of zero
    if bad.any():
        row = int(np.flatnonzero(bad.any(1))[0])
        raise MiaError(f"outputs hold NaN or infinity in {bad.any(1).sum()} of {records} records, the first is number "
                       f"{row}: find out why, as by model(x) of that record; a model whose training diverged has nothing "
                       f"to audit.")
    return answers


def check_declared(answers: np.ndarray, outputs: str, loss: str = "cross_entropy") -> np.ndarray:
    """Outputs that are what they were declared to be.

    Args:
        answers: [N, K]. outputs: "logits" or "probabilities". loss: that the model was trained with; by "squared_error" its
            outputs are to be one-hot, and may all be in [0, 1].

    Raises:
        MiaError: probabilities, sigmoids or percentages for logits, logits or rounded probabilities for probabilities, outputs
            that do not depend on the record.
    """
    probable = are_probabilities(answers)
    if outputs == "logits" and probable:
        raise MiaError("outputs = 'logits', but all are in [0, 1] and each row has the sum 1: these are probabilities. Say "
                       "outputs='probabilities', or better give what goes into the softmax, which is not rounded.")
    if outputs == "logits" and loss != "squared_error" and (kind := explain_not_logits(answers)):
        raise MiaError(f"outputs = 'logits', but these seem to be {kind}.")
    if outputs == "probabilities" and not probable:
        with np.errstate(over="ignore"):
            logs = bool((answers <= 0).all()) and are_probabilities(np.exp(answers.astype(np.float64)))
        sums = answers.sum(1, dtype=np.float64)
        kind = ("these are logarithms of probabilities. Say outputs='logits': a softmax leaves them as they are" if logs else
                f"rows have sums from {sums.min():.4g} to {sums.max():.4g} and entries from {answers.min():.4g} to "
                f"{answers.max():.4g}. "
                + (explain_not_probabilities(answers) or "Say outputs='logits', or give what the softmax makes of them"))
        raise MiaError(f"outputs = 'probabilities', but {kind}.")
    if len(answers) > 1 and (answers == answers[0]).all():
        raise MiaError(f"outputs are the same for all {len(answers)} records "
                       f"({', '.join(f'{v:.4g}' for v in answers[0][:4])}): such a model tells nothing about any record. Look "
                       "whether it is the right one, and gets the right input.")
    return answers


def check_outputs(target: Target, x: np.ndarray, loss: str = "cross_entropy") -> None:
    """Ask about a few records first, so that what is wrong is said before the work.

    Args:
        x: at least 4 records. loss: as for `check_declared`.

    Raises:
        MiaError: what `check_form` and `check_declared` refuse, outputs that change from call to call or with the batch,
            images for a network from elsewhere without a scaling, kept answers of another model.
    """
    if target.kind != "function" and target.scaling is None and x.ndim == 4 and not _knows_scaling(target.model):
        raise MiaError("scaling is missing: the model is no network of models.build, and pixels may be fed to it in "
                       "several ways, of which all but one give wrong outputs. Give scaling='0 to 1' (torchvision's "
                       "ToTensor), '0 to 255', '-1 to 1' or (mean, spread).")
    few = x[np.unique(np.linspace(0, len(x) - 1, ASKED).astype(int))]
    first, second = (check_declared(target.ask(few, again=True), target.outputs, loss).astype(np.float64) for _ in range(2))
    if not _same(first, second, SAME * _size(first)):
        raise MiaError("outputs change from one call to the next for the same records: something in the model is random, "
                       "such as dropout. Export or call it in evaluation mode.")
    half = target.ask(few[:len(few) // 2], again=True).astype(np.float64)
    if not _same(first[:len(half)], half, SAME * _size(first)):
        raise MiaError("outputs of a record depend on the other records of its batch, as in batch normalisation that was "
                       "left in training mode. Export or call the model in evaluation mode.")
    if target.kind == "function":
        target.compare(x)
    elif target.kind == "network":
        with torch.no_grad():
            target._unpacked(target.model(evaluation.inputs(x, 0, 1, evaluation.device_of(target.model), torch.float32,
                                                            target.fed)))


def _knows_scaling(model) -> bool:
    """Whether a model says how images are fed to it."""
    return architectures.fed(model) is not None or isinstance(model, nn.Module) and any(
        isinstance(part, architectures.Network) for part in model.modules())


def _same(one: np.ndarray, other: np.ndarray, within: float) -> bool:
    return bool(one.shape == other.shape and (np.isfinite(one) == np.isfinite(other)).all() and _apart(one, other) <= within)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of what is finite in both."""
    finite = np.isfinite(one) & np.isfinite(other)
    return float(np.abs(one[finite] - other[finite]).max(initial=0))


def _size(answers: np.ndarray) -> float:
    return float(np.abs(answers[np.isfinite(answers)]).max(initial=0))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]
