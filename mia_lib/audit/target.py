"""The model that is audited, as a function from records to outputs, and whether these are what they were declared to be.

A model is a network, a program of `torch.export`, an estimator as of scikit-learn, or any function from records to outputs: a
session of ONNX Runtime, an endpoint. What a function answers is kept batch by batch, for it may be slow, cost money, or fail
in the middle.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax
from torch import nn

from mia_lib import environment, frames, progress, signals, store
from mia_lib import models as architectures
from mia_lib.archives import read_npz
from mia_lib.audit.options import AuditOptions
from mia_lib.checks import as_array, take_logits
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, first_line, list_few
from mia_lib.signals import outputs as evaluation
from mia_lib.training import TrainConfig

BATCH = 1000  # records of a function's call
FIRST_LOOK_RECORDS = 32  # records that the first look asks about
LEAST_ROUNDED = 1e-4  # least probability of a model that rounds
OUTPUT_TOLERANCE = 1e-3  # of the largest output: what rounding may change from one call to the next
# kept answers that are asked for again, and what of the largest may differ beside what batches change
AGAIN, KEPT = 100, 2e-5
# method of an estimator that gives outputs
METHODS = {"probabilities": "predict_proba", "labels": "predict", "logits": "decision_function"}
SUM = 1e-3  # by which probabilities of the best classes may exceed 1, and what rounding adds
TREES = ("Forest", "Tree", "Boost", "XGB", "LGBM")  # in names of estimators that are made of trees


@dataclass
class Queries:
    """Number of records asked about so far, and what the answers showed."""

    records: int = 0  # each as often as it was asked about
    digits: int = 0  # of rounded probabilities, 0 of others
    unpacked: set[str] = field(default_factory=set)  # types of objects whose `logits` were taken
    best: int = 0  # classes of the best, where these alone were answered


@dataclass(frozen=True, eq=False)
class Target:
    """The model that is audited."""

    model: nn.Module | Callable
    kind: str  # "network", "program" or "function"
    outputs: str  # what signals are made of, "logits" or "probabilities"
    classes: int  # K
    # class of each column, int [C], unless these are the K in their order
    places: np.ndarray | None = None
    # names of the classes where it predicts these, which count as probabilities of zero and one
    labels: tuple[str, ...] = ()
    # of images for a network or a program, see `models.to_input`
    scaling: str | tuple | None = None
    keep: Path | None = None  # folder for the answers of a function
    # that it was trained with, as far as is known and its outputs have it
    loss: str = "cross_entropy"
    best: tuple[
        str, ...
    ] = ()  # names of the classes where it gives probabilities of the best alone
    batch: int | None = None  # records of a call; by default BATCH of a function, all of a network
    queries: Queries = field(default_factory=Queries)
    owner: object = None  # the estimator whose method it is
    _signals: dict = field(default_factory=dict, init=False, repr=False)

    @property
    def parameters(self) -> int | None:
        """Number P of parameters of a network; None for other models."""
        return sum(w.numel() for w in self.model.parameters()) if self.kind == "network" else None

    @property
    def frozen(self) -> int:
        """Number of frozen parameters of a network that has others, too, as one with an adapter."""
        if self.kind != "network":
            return 0
        fixed = sum(w.numel() for w in self.model.parameters() if not w.requires_grad)
        return fixed if fixed < self.parameters else 0

    @property
    def family(self) -> str:
        """What is known of its making: "network", "trees", or "" of anything else."""
        last = getattr(self.owner, "steps", [("", self.owner)])[-1][1]
        trees = any(name in type(last).__name__ for name in TREES)
        return "network" if self.kind == "network" else "trees" if trees else ""

    @property
    def input_scaling(self) -> str | tuple:
        """Scaling with which images are fed to a network."""
        return self.scaling or architectures.input_scaling(self.model) or "-1 to 1"

    @cached_property
    def folder(self) -> Path:
        """Folder for a function's answers."""
        return self.keep or store.cache_dir() / "answers" / secrets.token_hex(6)

    def kept(self, x: np.ndarray) -> Path | None:
        """The file of a function's answers about the records `x`; None for other models."""
        return self.folder / f"{store.fingerprint(x)[:32]}.npz" if self.kind == "function" else None

    def ask(self, x: np.ndarray, again: bool = True) -> np.ndarray:
        """Outputs [N, K] of the model for records, checked.

        Args:
            x: in the form of `Dataset.x`. again: whether a function is asked whatever it answered before; that is left as it
                is.

        Raises:
            MiaError: outputs of another form; a function that fails, which says where its answers until then are.
        """
        keep = None if again else self.kept(x)
        try:
            if keep is not None:
                keep.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            progress.say(
                f"{keep.parent} cannot be made ({error.strerror}): the answers are kept in memory alone."
            )
            keep = None
        try:
            with warnings.catch_warnings():
                # one answer for all, which `check_outputs` refuses
                warnings.simplefilter("ignore", UserWarning)
                batch = self.batch or (len(x) if self.kind == "network" else BATCH)
                answers = signals.from_function(
                    self._answer, x, self.outputs, batch, keep, self.loss
                )
        except MiaError as problem:
            said = str(problem).replace("function,", f"model, a {self.kind},", 1)
            if keep is not None and keep.is_file():
                said += f" In an audit keep is the folder of that file: keep={str(self.folder)!r}."
            problem.args = (said,)  # its answers so far stay with it
            raise
        columns = self.classes if self.places is None else len(self.places)
        if answers.shape[1] != columns:
            raise MiaError(
                f"outputs have {answers.shape[1]} columns, but {columns} are needed, one for each class of the "
                "records, in the order of Dataset.classes. A model that never saw some class says which it knows "
                "by columns=model.classes_, their names or numbers in the order of its columns (--columns and "
                "their names, a,b,c, on the command line), or puts them where "
                f"they belong: p = np.zeros((len(x), {columns})); p[:, model.classes_] = model.predict_proba(x)."
            )
        if (answers == -np.inf).all(1).any():
            raise MiaError(
                "outputs hold NaN or infinity, the latter in all classes of a record: a model whose training "
                "diverged has nothing to audit."
            )
        if self.places is None:
            return answers
        whole = np.full(
            (len(x), self.classes), 0 if self.outputs == "probabilities" else -np.inf, answers.dtype
        )
        whole[:, self.places] = answers  # a class that the model does not know has no probability
        return whole

    def _answer(self, part: np.ndarray) -> np.ndarray:
        """Outputs of the model for a batch, as an array; the `logits` if it returns a dictionary or
        an object."""
        self.queries.records += len(part)
        answer = (
            signals.model_outputs(self.model, part, self.scaling)
            if self.kind == "network"
            else self.model(part)
        )
        if self.best:
            probabilities, count = spread(answer, len(part), self.best)
            self.queries.best = max(count, self.queries.best)
            return probabilities
        logits = take_logits(answer)
        if logits is not answer:
            self.queries.unpacked.add(type(answer).__name__)
        elif (
            isinstance(answer, dict)
            or isinstance(answer, tuple)
            and len(answer)
            and np.ndim(answer[0]) == 2
        ):
            place = "[0]" if isinstance(answer, tuple) else f"[{next(iter(answer), 'logits')!r}]"
            raise MiaError(
                f"outputs are a {type(answer).__name__} of {len(answer)}: an array [N, K] is needed. Wrap the "
                f"model: lambda x: model(x){place}."
            )
        answers = as_array(logits)
        if self.labels:
            return one_hot(answers, len(part), self.labels)
        if self.outputs == "probabilities" and (digits := count_digits(answers)):
            self.queries.digits = max(digits, self.queries.digits)
            answers = np.where(answers.sum(1, keepdims=True) > 0, answers, 1.0)
            answers = answers / answers.sum(1, keepdims=True)
        return answers

    def scalars(self, records: Dataset) -> dict[str, np.ndarray]:
        """Every scalar signal of records, [N], their `probabilities` and `outputs`, [N, K]; each is asked about once."""
        if records.fingerprint not in self._signals:
            answers = self.ask(records.x, again=False)
            self._signals[records.fingerprint] = scalars(
                answers, records.y, self.outputs, self.loss
            )
        return self._signals[records.fingerprint]


def scalars(answers: np.ndarray, y: np.ndarray, outputs: str, loss: str) -> dict[str, np.ndarray]:
    """Every scalar signal of answers [N, K], with `probabilities` and `outputs`, as `Target.scalars` has them.

    Args:
        y: labels int [N]. outputs: "logits" or "probabilities". loss: as for `signals.scalars`.
    """
    probabilities = (
        answers if outputs == "probabilities" else softmax(answers.astype(np.float64), 1)
    )
    with warnings.catch_warnings():
        # rounded probabilities, whose records tie
        warnings.simplefilter("ignore", UserWarning)
        if outputs == "logits" and (np.isfinite(answers).all() or loss == "squared_error"):
            scalar = signals.scalars(answers, y, loss)
        else:  # logits of -inf are the logarithms of probabilities of zero
            # a zero of coarse ones, as of trees, is half of it
            least = probabilities[probabilities > 0].min(initial=1.0)
            floor = min(float(least) / 2, 0.1) if least > LEAST_ROUNDED else None
            scalar = signals.from_probabilities(probabilities, y, loss, floor)
    return {**scalar, "probabilities": probabilities, "outputs": answers}


def check_model(
    model, classes: Sequence[str], options: AuditOptions, scaling: str | tuple | None
) -> Target:
    """A model as it may be audited. Something else, a network in training mode and columns that are no classes raise
    `MiaError`."""
    kind = "network" if isinstance(model, nn.Module) else "function"
    if problem := _find_model_problem(model):
        raise MiaError(f"model = {problem}.")
    if kind == "network" and not isinstance(model, torch.fx.GraphModule):
        training = [
            name or type(model).__name__ for name, part in model.named_modules() if part.training
        ]
        if training:
            raise MiaError(
                f"model is in training mode ({list_few(training)}): "
                f"dropout and batch normalisation would make its outputs random. Call model.eval() first."
            )
    owner, model, declared = _as_answering(model, options.outputs, classes)
    labels, best = declared == "labels", declared == "top-k"
    loss = options.recipe.loss if isinstance(options.recipe, TrainConfig) else "cross_entropy"
    places = None if labels or best else column_places(owner, options.columns, classes)
    if isinstance(model, torch.export.ExportedProgram):
        kind, model = "program", _as_function(model, scaling or "-1 to 1")
    if (labels or best) and kind != "function":
        raise MiaError(
            f"outputs = {declared!r} is for a function that gives classes, and a network says more: give "
            "outputs='logits'."
        )
    outputs = "probabilities" if labels or best else declared
    if outputs == "probabilities" and loss == "squared_error":  # which is one of other outputs
        loss = "cross_entropy"
    return Target(
        model,
        kind,
        outputs,
        len(classes),
        places,
        tuple(classes) if labels else (),
        scaling,
        None if options.keep is None else environment.path(options.keep),
        loss,
        best=tuple(classes) if best else (),
        batch=options.batch,
        owner=owner,
    )


def _as_answering(model, outputs: str | None, classes: Sequence[str]) -> tuple[object, object, str]:
    """An estimator or another model, what answers for it, and what that gives: "logits" unless `outputs` or an estimator
    says otherwise."""
    if callable(model) or isinstance(model, torch.export.ExportedProgram):
        owner = getattr(model, "__self__", model)
        return owner, model, outputs or "logits"
    ways = {kind: name for kind, name in METHODS.items() if hasattr(model, name)}
    declared = outputs or next(iter(ways))
    if declared not in ways:
        lacking = (
            f"are those of {METHODS[declared]}, which a {type(model).__name__} does not have"
            if declared in METHODS
            else f"is for a function, and a {type(model).__name__} says more"
        )
        raise MiaError(
            f"outputs = {declared!r} {lacking}: allowed is {' or '.join(map(repr, ways))}."
        )
    answer, known = getattr(model, ways[declared]), getattr(model, "classes_", ())
    if declared == "labels" and {str(name) for name in known} <= {*classes}:
        return model, lambda x: np.asarray(answer(x)).astype(str), declared
    return model, answer, declared


def _find_model_problem(model) -> str:
    """Words that say what was given in the place of a model, and what to give; "" for a model."""
    if isinstance(model, type):
        return f"{model.__name__} is a class: give a model that was trained, {model.__name__}(...) with its weights loaded"
    if isinstance(model, str | Path):
        return (
            f"{str(model)!r} is text: give the network or the function itself. The command line reads files: `mia audit "
            "my_module:factory --state weights.safetensors ...`"
        )
    if isinstance(model, dict):
        return (
            f"a dictionary of {len(model)} entries, as a state_dict is: build the network and give it these weights, "
            "network.load_state_dict(state); network.eval()"
        )
    if isinstance(model, bytes):
        return (
            "bytes, as of a pickle, which are not read here. Load it yourself where you trust it, and give the network or "
            "its predict function"
        )
    if isinstance(model, torch.fx.GraphModule) and "eval" in vars(model):  # which has no mode
        return "the module of a torch.export program: give the program itself, as torch.export.export returns it"
    if callable(model) or isinstance(model, torch.export.ExportedProgram):
        return ""
    if any(hasattr(model, name) for name in METHODS.values()):
        return ""
    return (
        f"of type {type(model).__name__}, which cannot be called. Give a torch.nn.Module, a torch.export program, an "
        "estimator that was fitted, or a function from records to outputs [N, K]"
    )


def _as_function(program: torch.export.ExportedProgram, scaling: str | tuple) -> Callable:
    """A program as a function from records in the form of `Dataset.x` to what it returns."""
    module = program.module()

    def function(x: np.ndarray):
        part = evaluation.inputs(x, 0, len(x), evaluation.device_of(module), torch.float32, scaling)
        try:
            with torch.no_grad():
                return module(part)
        except Exception as error:
            raise MiaError(
                f"model, a torch.export program, does not take {len(part)} records of shape "
                f"{tuple(part.shape[1:])} ({first_line(error)}). Export it for any number of records: "
                "torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))."
            ) from error

    return function


def column_places(model, columns: Sequence | None, classes: Sequence[str]) -> np.ndarray | None:
    """The class of each of a model's columns, int [C]; None where they are all classes in their order, or nothing is known.

    Args:
        model: an estimator, of which `classes_` are read, or any other. columns: names or numbers of the classes, which
            count before these; others, one twice, and numbers that are names of other classes, too, raise `MiaError`.
        classes: names of the K classes.
    """
    known = columns if columns is not None else getattr(model, "classes_", None)
    if known is None or columns is None and isinstance(known, list):  # of several outputs
        return None
    known = np.asarray(known).tolist()
    numbers = all(isinstance(name, int) and 0 <= name < len(classes) for name in known)
    named = [classes.index(str(name)) for name in known if str(name) in classes]
    if numbers and len(named) == len(known) and named != known:
        raise MiaError(
            f"columns = {known} may be names of classes or numbers from 0, which are other ones: give names as "
            f"texts, columns={[str(name) for name in known]} or {[str(classes[k]) for k in known]}."
        )
    places = known if numbers else named
    if len(set(places)) < len(known):
        if columns is None:
            return None
        raise MiaError(
            f"columns = {known}: each must be one of the records' classes, {', '.join(map(str, classes))}, and "
            "stand once, in the order of the model's columns."
        )
    return None if places == list(range(len(classes))) else np.array(places, int)


def one_hot(answers: np.ndarray, records: int, classes: Sequence[str]) -> np.ndarray:
    """Predicted classes, by number or by name, as probabilities of zero and one, [n, K]; a `MiaError` of anything else, and of
    numbers that are names of other classes, too."""
    form = f"outputs = 'labels', and the model gives {answers.dtype} of shape {answers.shape} for {records} records"
    names = f"The classes are {', '.join(classes[:20])}."
    if answers.shape == (records,) and answers.dtype.kind in "UO":
        if unknown := {*map(str, answers)} - {*classes}:
            raise MiaError(
                f"outputs = 'labels', and the model predicts {min(unknown)!r}, which is no class here. {names}"
            )
        answers = np.array([classes.index(str(name)) for name in answers])
    elif (
        answers.shape != (records,)
        or answers.dtype.kind not in "iub"
        or not ((answers >= 0) & (answers < len(classes))).all()
    ):
        raise MiaError(
            f"{form}: a class from 0 to {len(classes) - 1} a record is needed, whole numbers [N], in the order of "
            f"Dataset.classes, or names as texts. {names}"
        )
    elif any(classes.index(str(k)) != k for k in range(len(classes)) if str(k) in classes):
        raise MiaError(
            f"{form}, which may be names of classes or numbers from 0, which are other ones. {names} Give names as "
            "texts, lambda x: model(x).astype(str), or, of numbers from 0, np.array(classes)[model(x)]."
        )
    return np.eye(len(classes))[answers.astype(int)]


def count_digits(answers: np.ndarray) -> int:
    """Decimals, up to three, of rounded probabilities [n, K], whose rows have the sum 1 but for what rounding may change; 0 of
    anything else."""
    if (
        answers.ndim != 2
        or answers.dtype.kind != "f"
        or not ((answers >= 0) & (answers <= 1)).all()
    ):
        return 0
    digits = next(
        (
            digits
            for digits in (1, 2, 3)
            if np.abs(answers * 10.0**digits - np.round(answers * 10.0**digits)).max(initial=0)
            < 1e-3
        ),
        0,
    )
    over = answers.sum(1) - 1
    most = np.where(over > 0, (answers > 0).sum(1), answers.shape[1]) / 2 * 10.0**-digits
    return digits if (np.abs(over) <= most + 1e-6).all() else 0


def spread(answer, records: int, classes: Sequence[str]) -> tuple[np.ndarray, int]:
    """Probabilities of the best classes alone as those of all, [n, K], and how many were answered at most: what is left to the
    sum 1 is spread evenly over the other classes.

    Args:
        answer: probabilities [n, K], zero or NaN for what is no best class; a pair of classes, by name or number, and their
            probabilities, both [n, k] or [n]; or for each record a dictionary of class -> probability.

    Raises:
        MiaError: another form, a class that is none, probabilities that are none.
    """
    if isinstance(answer, list) and answer and all(isinstance(one, dict) for one in answer):
        given = np.full((len(answer), len(classes)), np.nan)
        for row, one in enumerate(answer):
            for name, p in one.items():
                given[row, _place(name, classes)] = p
    elif isinstance(answer, tuple) and len(answer) == 2:
        names, p = (as_array(part).reshape(len(part), -1) for part in answer)
        if names.shape != p.shape:
            raise MiaError(
                f"outputs = 'top-k', and the model gives classes {names.shape} with probabilities {p.shape}: both need one "
                "shape, [n, k] or [n]."
            )
        given = np.full((len(names), len(classes)), np.nan)
        places = [[_place(name, classes) for name in row] for row in names.tolist()]
        if any(len(set(row)) < len(row) for row in places):
            raise MiaError(
                "outputs = 'top-k', and the model gives a class twice for one record: give each class once, and where there "
                "are fewer than k, probabilities [N, K] or dictionaries."
            )
        given[np.arange(len(names))[:, None], places] = p
    else:
        given = as_array(answer)
    if given.shape != (records, len(classes)) or given.dtype.kind not in "fiu":
        raise MiaError(
            f"outputs = 'top-k', and the model gives {type(answer).__name__} of shape {given.shape}: for {records} records "
            f"probabilities [{records}, {len(classes)}] are needed, zero for what is no best class, or a pair of classes and "
            "their probabilities, or a list of dictionaries of class -> probability."
        )
    known = given > 0
    p = np.where(known, given, 0.0).astype(np.float64)
    count = known.sum(1, keepdims=True)
    most = 1 + SUM + count * 0.05  # rounded to one digit
    if (given < 0).any() or (p > 1).any() or (p.sum(1, keepdims=True) > most).any():
        raise MiaError(
            f"outputs = 'top-k', and the model gives numbers from {np.nanmin(given):.4g} to {np.nanmax(given):.4g} with sums "
            f"of rows to {p.sum(1).max():.4g}: probabilities are needed."
        )
    left = np.maximum(0, 1 - p.sum(1, keepdims=True))
    p = np.where(known, p, left / np.maximum(1, len(classes) - count))
    return p / p.sum(1, keepdims=True), int(count.max())


def _place(name, classes: Sequence[str]) -> int:
    """Place of a class that is given by its name or its number."""
    if str(name) in classes:
        place = classes.index(str(name))
        if isinstance(name, int) and place != name < len(classes):
            raise MiaError(
                f"outputs = 'top-k', and the model gives {name}, which may be the name of a class or a number from 0, which "
                f"are other ones. The classes are {list_few(classes)}. Give names as texts."
            )
        return place
    if isinstance(name, int) and 0 <= name < len(classes):
        return name
    raise MiaError(
        f"outputs = 'top-k', and the model gives {name!r}, which is no class here. The classes are {list_few(classes)}."
    )


def check_outputs(target: Target, x: np.ndarray, *more: np.ndarray) -> None:
    """Ask about a few of the records `x` first, so that what is wrong is said before the work: what `Target.ask` refuses,
    outputs that are the same for all or change from call to call or with the batch, images for a network from elsewhere
    without a scaling, kept answers of another model about these records or `more`."""
    if (
        target.kind != "function"
        and target.scaling is None
        and x.ndim == 4
        and not (
            target.kind == "network"
            and (
                architectures.input_scaling(target.model) is not None
                or any(isinstance(part, architectures.Network) for part in target.model.modules())
            )
        )
    ):
        raise MiaError(
            "scaling is missing: the model is no network of models.build, and pixels may be fed to it in "
            "several ways, of which all but one give wrong outputs. Give scaling='0 to 1' (torchvision's "
            "ToTensor), '0 to 255', '-1 to 1' or (mean, spread)."
        )
    few = frames.take(x, np.unique(np.linspace(0, len(x) - 1, FIRST_LOOK_RECORDS).astype(int)))
    others = np.arange(1, len(few), 2)  # which stand in other batches, whatever their size
    first, second, half = (
        target.ask(part).astype(np.float64) for part in (few, few, frames.take(few, others))
    )
    size = _size(first)
    if (first == first[0]).all():
        raise MiaError(
            f"outputs are the same for all {len(first)} records ({', '.join(f'{v:.4g}' for v in first[0][:4])}): "
            "they tell nothing about any record. Look whether it is the right model, and gets the right input."
        )
    if changed(first, second):
        raise MiaError(
            "outputs change from one call to the next for the same records: something in the model is random, "
            "such as dropout. Export or call it in evaluation mode."
        )
    if (noise := _apart(first[others], half)) > OUTPUT_TOLERANCE * size:
        raise MiaError(
            "outputs of a record depend on the other records of its batch, as in batch normalisation that was "
            "left in training mode: export or call the model in evaluation mode. A model of int8 that scales its inputs by "
            "the batch is asked one by one, batch=1 (--batch 1), for batches of members alone would differ from others."
        )
    if target.kind == "network":
        with torch.no_grad():
            answer = target.model(
                evaluation.inputs(
                    x, 0, 1, evaluation.device_of(target.model), torch.float32, target.input_scaling
                )
            )
        if take_logits(answer) is not answer:
            target.queries.unpacked.add(type(answer).__name__)
    for asked in (x, *more):
        if (path := target.kept(asked)) is None or not path.is_file():
            continue
        try:
            kept = read_npz(path, str(path), ("answers",), ())["answers"].astype(np.float64)
        except ValueError:
            continue  # a damaged file, of which `signals.from_function` says so
        some = np.sort(
            np.random.default_rng(0).choice(len(kept), min(AGAIN, len(kept)), replace=False)
        )
        now = target.ask(frames.take(asked, some)).astype(np.float64) if len(some) else kept
        now = now if target.places is None else now[:, target.places]
        if _apart(now, kept[some]) > KEPT * size + 4 * noise:
            raise MiaError(
                f"keep = {str(target.keep)!r} holds answers that the model does not give now: they are of "
                f"another model. Give another folder, or delete it."
            )


def _size(answers: np.ndarray) -> float:
    """The largest number among those that are finite, whatever its sign."""
    return float(np.abs(answers[np.isfinite(answers)]).max(initial=0))


def changed(first: np.ndarray, second: np.ndarray) -> bool:
    """True if outputs [n, K] for the same records are farther apart than rounding makes them."""
    return _apart(first, second) > OUTPUT_TOLERANCE * _size(first)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of what is finite in both; infinite where other entries are, or shapes differ."""
    if one.shape != other.shape or (np.isfinite(one) != np.isfinite(other)).any():
        return np.inf
    finite = np.isfinite(one)
    return float(np.abs(one[finite] - other[finite]).max(initial=0))
