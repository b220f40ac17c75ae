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
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from mia_lib import models as architectures
from mia_lib import signals, store
from mia_lib.checks import are_probabilities, one_output, to_probabilities, unlike_logits
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, choose
from mia_lib.signals import outputs as evaluation

OUTPUTS = ("logits", "probabilities", "labels")
BATCH = 1000  # records of a function's call
ASKED = 32  # records that the first look asks about
COARSE = 1e-4  # least probability of a model that rounds
SAME = 1e-3  # of the largest output: what rounding may change from one call to the next
AGAIN, KEPT = 100, 2e-5  # kept answers that are asked for again, and what of the largest may differ beside what batches change


@dataclass(frozen=True, eq=False)
class Target:
    """The model that is audited.

    Attributes:
        model: as it was given.
        outputs: what it gives, one of `OUTPUTS`.
        classes: K.
        scaling: of images for a network or a program, see `models.to_input`.
        keep: folder for the answers of a function.
    """

    model: nn.Module | torch.export.ExportedProgram | Callable
    outputs: str
    classes: int
    scaling: str | tuple | None = None
    keep: Path | None = None
    _said: dict = field(default_factory=dict, repr=False)
    _compared: set = field(default_factory=set, repr=False)
    _counted: list[int] = field(default_factory=lambda: [0], repr=False)

    @property
    def queries(self) -> int:
        """Records that the model was asked about so far, each as often as it was asked; answers that were kept are none."""
        return self._counted[0]

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
        return next((one for one in (self.scaling, known) if one is not None), "-1 to 1")

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
            x: in the form of `Dataset.x`. again: whether a function is asked whatever it answered before; that
                is left as it is.

        Raises:
            MiaError: outputs of another form, a function that fails.
        """
        if self.kind == "network":
            self._counted[0] += len(x)
            try:
                found = plain(signals.model_outputs(self.model, x, self.scaling))
            except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
                if isinstance(error, MiaError):
                    raise
                if isinstance(error, AttributeError):  # no tensor comes back, which says itself
                    self._refuse_packed(x)
                half = sorted({str(one.dtype)[6:] for one in self.model.parameters()} & {"float16", "bfloat16"})
                remedy = (f"Its parameters are {' and '.join(half)}, and records come in float32: give model.float()." if half
                          else "Give the network that was trained on such records, or wrap it in a function that prepares "
                               "them.")
                raise MiaError(f"model = {type(self.model).__name__} does not take records of shape {x.shape[1:]} "
                               f"({_first_line(error)}). {remedy}") from error
        elif self.kind == "program":
            found = self._through_program(x)
        else:
            found = self._answers(x, again)
        return checked(found, len(x), self.classes)

    def _refuse_packed(self, x: np.ndarray) -> None:
        """Say what a network returns in the place of a tensor, such as an object with `logits`."""
        first = evaluation.inputs(x, 0, 1, evaluation.device_of(self.model), torch.float32, self.fed)
        with torch.no_grad():
            packed = self.model(first)
        if not isinstance(packed, torch.Tensor):
            what = "['logits']" if isinstance(packed, dict) else "[0]" if isinstance(packed, tuple) else ".logits"
            raise MiaError(f"model = {type(self.model).__name__} returns a {type(packed).__name__}: a tensor [N, K] is "
                           f"needed. Wrap it in a torch.nn.Module whose forward returns self.model(x){what}; a function, "
                           f"lambda x: model(x){what}, does as well for attacks without gradients.")

    def _through_program(self, x: np.ndarray) -> np.ndarray:
        parts = []
        self._counted[0] += len(x)
        with torch.no_grad():
            for start in range(0, len(x), 500):
                part = evaluation.inputs(x, start, min(start + 500, len(x)), evaluation.device_of(self._module),
                                         torch.float32, self.fed)
                try:
                    parts.append(plain(self._module(part)))
                except Exception as error:
                    raise MiaError(
                        f"model, a torch.export program, does not take {len(part)} records of shape "
                        f"{tuple(part.shape[1:])} ({_first_line(error)}). Export it for any number of records: "
                        f"torch.export.export(model, (x,), "
                        "dynamic_shapes=({0: torch.export.Dim.AUTO},)).") from error
        return np.concatenate(parts)

    def _answers(self, x: np.ndarray, again: bool) -> np.ndarray:
        keep = None if again else self._file(x)
        if keep is not None:
            self.compare(x)
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # one answer for all, which `declared` refuses
                return signals.from_function(self._answer, x, self.outputs, BATCH, keep)
        except MiaError as problem:
            if getattr(problem, "answered", None) is None or keep is None:
                raise
            raise MiaError(f"{problem} In an audit keep is the folder of that file: "
                           f"keep={str(self.folder)!r}.") from problem

    def _answer(self, part: np.ndarray) -> np.ndarray:
        self._counted[0] += len(part)
        return plain(self.model(part))

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
            with np.load(path, allow_pickle=False) as held:
                kept = held["answers"].astype(np.float64)
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
            kept = np.empty(0)  # not there, or damaged, which `signals.from_function` says
        some = np.sort(np.random.default_rng(0).choice(len(kept), min(AGAIN, len(kept)), replace=False))
        if len(some):
            now = self.ask(x[some], again=True).astype(np.float64)
            half = self.ask(x[some[:max(1, len(some) // 2)]], again=True).astype(np.float64)
            if not _same(kept[some], now, KEPT * _size(now) + 4 * _apart(now[:len(half)], half)):
                raise MiaError(f"keep = {str(self.folder)!r} holds answers that the model does not give now: they are of "
                               f"another model. Give another folder, or delete it.")
        self._compared.add(path)

    def scalars(self, records: Dataset, loss: str) -> dict[str, np.ndarray]:
        """Every scalar signal of records, and their `probabilities`; each record is asked about once."""
        key = records.fingerprint, loss
        if key not in self._said:
            found, y = declared(self.ask(records.x), self.outputs, loss), records.y
            probabilities = found if self.outputs == "probabilities" else _softmax(found)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # rounded probabilities, which the page counts as ties
                if self.outputs == "logits" and (np.isfinite(found).all() or loss == "squared_error"):
                    scalar = signals.scalars(found, y, loss)
                else:  # logits of -inf are the logarithms of probabilities of zero
                    scalar = signals.from_probabilities(probabilities, y, loss, self._floor(probabilities))
            self._said[key] = {**scalar, "probabilities": probabilities, "outputs": found}
        return self._said[key]

    @staticmethod
    def _floor(p: np.ndarray) -> float | None:
        """What a probability of zero counts as, where they are coarse: half of the least that is none, as of trees."""
        least = p[p > 0].min()
        return min(float(least) / 2, 0.1) if least > COARSE else None

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


def target(model, outputs: str, classes: int, scaling=None, keep=None) -> Target:
    """A model as it may be audited.

    Raises:
        MiaError: something else than a model, a network in training mode.
    """
    choose("outputs", outputs, OUTPUTS)
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
    if not isinstance(model, nn.Module | torch.export.ExportedProgram) and not callable(model):
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
    if not isinstance(keep, str | Path | None):
        raise MiaError(f"keep = {keep!r}: the name of a folder for the answers is needed.")
    if keep is not None and Path(keep).exists() and not Path(keep).is_dir():
        raise MiaError(f"keep = {str(keep)!r} is a file: a folder for the answers is needed.")
    if outputs == "labels":
        if isinstance(model, nn.Module | torch.export.ExportedProgram):
            raise MiaError("outputs = 'labels' is for a function that predicts classes, and a network says more: give "
                           "outputs='logits'.")
        model, outputs = partial(one_hot, model, classes), "probabilities"
    return Target(model, outputs, classes, scaling, None if keep is None else Path(keep))


def one_hot(predict: Callable, classes: int, x: np.ndarray) -> np.ndarray:
    """Predicted classes as probabilities of zero and one, [n, K].

    Raises:
        MiaError: something else than a class a record.
    """
    said = plain(predict(x))
    if said.shape != (len(x),) or said.dtype.kind not in "iub" or not ((said >= 0) & (said < classes)).all():
        raise MiaError(f"outputs = 'labels', but the model gives {said.dtype} of shape {said.shape} for {len(x)} records: a "
                       f"class from 0 to {classes - 1} a record is needed, whole numbers [N], in the order of "
                       "Dataset.classes.")
    return np.eye(classes)[said.astype(int)]


def plain(found) -> np.ndarray:
    """What a model returned as NumPy array."""
    if isinstance(found, dict) or hasattr(found, "logits"):
        raise MiaError(f"outputs are of type {type(found).__name__}: an array [N, K] is needed. Wrap the model: "
                       "lambda x: model(x).logits.")
    if isinstance(found, tuple) and len(found) and np.ndim(found[0]) == 2:
        raise MiaError(f"outputs are a tuple of {len(found)}: an array [N, K] is needed. Wrap the model: lambda x: "
                       "model(x)[0].")
    return found.detach().cpu().numpy() if isinstance(found, torch.Tensor) else np.asarray(found)


def checked(found: np.ndarray, records: int, classes: int) -> np.ndarray:
    """Outputs that are numbers [N, K] without NaN; of a function `signals.from_function` has looked before.

    Raises:
        MiaError: anything else, with what to do.
    """
    if found.shape == (records, 1):
        remedy = one_output(found, "torch.cat([0 * s, s], 1) with outputs='logits'",
                            "torch.cat([1 - s, s], 1) with outputs='probabilities'")
        raise MiaError(f"outputs have shape {found.shape}, one column: [N, K] is needed. Give a network or a function around "
                       f"the model. {remedy}")
    if found.ndim != 2 or len(found) != records:
        raise MiaError(f"outputs have shape {found.shape} for {records} records: [{records}, {classes}] is needed, a row "
                       f"a record in their order.")
    if found.shape[1] != classes:
        raise MiaError(f"outputs have {found.shape[1]} columns, but the records have {classes} classes: one column a "
                       f"class is needed, in the order of Dataset.classes.")
    bad = ~np.isfinite(found) if found.dtype.kind == "f" else np.zeros(found.shape, bool)
    bad &= ~(found == -np.inf) | (found == -np.inf).all(1, keepdims=True)  # one: the logarithm of a probability of zero
    if bad.any():
        row = int(np.flatnonzero(bad.any(1))[0])
        raise MiaError(f"outputs hold NaN or infinity in {bad.any(1).sum()} of {records} records, the first is number "
                       f"{row}: find out why, as by model(x) of that record; a model whose training diverged has nothing "
                       f"to audit.")
    return found


def declared(found: np.ndarray, outputs: str, loss: str = "cross_entropy") -> np.ndarray:
    """Outputs that are what they were declared to be.

    Args:
        found: [N, K]. outputs: one of `OUTPUTS`. loss: that the model was trained with; by "squared_error" its outputs are
            to be one-hot, and may all be in [0, 1].

    Raises:
        MiaError: probabilities, sigmoids or percentages for logits, logits or rounded probabilities for probabilities, outputs
            that do not depend on the record.
    """
    probable = are_probabilities(found)
    if outputs == "logits" and probable:
        raise MiaError("outputs = 'logits', but all are in [0, 1] and each row has the sum 1: these are probabilities. Say "
                       "outputs='probabilities', or better give what goes into the softmax, which is not rounded.")
    if outputs == "logits" and loss != "squared_error" and (said := unlike_logits(found)):
        raise MiaError(f"outputs = 'logits', but these seem to be {said}.")
    if outputs == "probabilities" and not probable:
        with np.errstate(over="ignore"):
            logs = bool((found <= 0).all()) and are_probabilities(np.exp(found.astype(np.float64)))
        sums = found.sum(1, dtype=np.float64)
        said = ("these are logarithms of probabilities. Say outputs='logits': a softmax leaves them as they "
                "are" if logs else
                f"rows have sums from {sums.min():.4g} to {sums.max():.4g} and entries from {found.min():.4g} to "
                f"{found.max():.4g}. "
                + (to_probabilities(found) or "Say outputs='logits', or give what the softmax makes of them"))
        raise MiaError(f"outputs = 'probabilities', but {said}.")
    if len(found) > 1 and (found == found[0]).all():
        raise MiaError(f"outputs are the same for all {len(found)} records "
                       f"({', '.join(f'{v:.4g}' for v in found[0][:4])}): "
                       "such a model tells nothing about any record. Look whether it is the right one, and gets the right "
                       "input.")
    return found


def look(of: Target, x: np.ndarray, loss: str = "cross_entropy") -> None:
    """Ask about a few records first, so that what is wrong is said before the work.

    Args:
        x: at least 4 records. loss: as for `declared`.

    Raises:
        MiaError: what `checked` and `declared` refuse, outputs that change from call to call or with the batch, images for a
            network from elsewhere without a scaling, kept answers of another model.
    """
    if of.kind != "function" and of.scaling is None and x.ndim == 4 and not _knows(of.model):
        raise MiaError("scaling is missing: the model is no network of models.build, and pixels may be fed to it in "
                       "several ways, of which all but one give wrong outputs. Give scaling='0 to 1' (torchvision's "
                       "ToTensor), '0 to 255', '-1 to 1' or (mean, spread).")
    if of.kind != "function" and isinstance(of.scaling, str):
        choose("scaling", of.scaling, architectures.SCALINGS)
    few = x[np.unique(np.linspace(0, len(x) - 1, ASKED).astype(int))]
    first, second = (declared(of.ask(few, again=True), of.outputs, loss).astype(np.float64) for _ in range(2))
    if not _same(first, second, SAME * _size(first)):
        raise MiaError("outputs change from one call to the next for the same records: something in the model is random, "
                       "such as dropout. Export or call it in evaluation mode.")
    half = of.ask(few[:len(few) // 2], again=True).astype(np.float64)
    if not _same(first[:len(half)], half, SAME * _size(first)):
        raise MiaError("outputs of a record depend on the other records of its batch, as in batch normalisation that was "
                       "left in training mode. Export or call the model in evaluation mode.")
    if of.kind == "function":
        of.compare(x)


def _knows(model) -> bool:
    """Whether a model says how images are fed to it."""
    return architectures.fed(model) is not None or isinstance(model, nn.Module) and any(
        isinstance(part, architectures.Network) for part in model.modules())


def _same(one: np.ndarray, other: np.ndarray, within: float) -> bool:
    return bool(one.shape == other.shape and (np.isfinite(one) == np.isfinite(other)).all() and _apart(one, other) <= within)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of what is finite in both."""
    finite = np.isfinite(one) & np.isfinite(other)
    return float(np.abs(one[finite] - other[finite]).max(initial=0))


def _size(found: np.ndarray) -> float:
    return float(np.abs(found[np.isfinite(found)]).max(initial=0))


def _softmax(z: np.ndarray) -> np.ndarray:
    z = z.astype(np.float64)
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]
