"""Models trained with differential privacy: DP-SGD (Abadi et al. 2016) as Opacus has it.

Training is (epsilon, delta)-private when, for training sets D and D' that differ by one record and any set R of models,
``P(M(D) in R) <= exp(epsilon) P(M(D') in R) + delta`` (Watson et al. 2022, Eq. 4). Each step draws every record with
probability B / n, so that a batch has B records on average and may have none; clips the gradient of each record's loss to norm
C; and adds noise to their sum::

    theta <- theta - rate / B (sum_i g_i min(1, C / ||g_i||) + sigma C xi),  xi ~ N(0, I).

Sampling, clipping and accounting are Opacus' own. Sigma follows from epsilon by bisection on the accountant of Renyi
differential privacy ("rdp"), with C = 1 and delta = 1/n, as in the released code of Watson et al. Seeds are no secret here and
`history` is measured on the training records, so these models show what privacy does to attacks; they are not for release.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from numbers import Real

import numpy as np
import torch

from mia_lib import models as architectures
from mia_lib import progress
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_whole, first_line
from mia_lib.training import devices, ensemble, pool, recipe
from mia_lib.training.ensemble import Ensemble
from mia_lib.training.loop import Outcome, Task
from mia_lib.training.losses import NEXT_TOKEN, record_loss
from mia_lib.training.recipe import TrainConfig


@dataclass(frozen=True)
class Privacy:
    """Limit on what a model may reveal about one of its training records.

    Attributes:
        epsilon: above 0. delta: between 0 and 1; 1/n for n training records when None.
        clip: norm C that the gradient of each record's loss is clipped to, above 0; others are refused.
    """

    epsilon: float
    delta: float | None = None
    clip: float = 1.0

    def __post_init__(self):
        for name, below in (("epsilon", math.inf), ("delta", 1.0), ("clip", math.inf)):
            value = getattr(self, name)
            if name == "delta" and value is None:
                continue
            if not isinstance(value, Real) or not 0 < value < below:
                span = (
                    "between 0 and 1 (neither included), or None for 1/n,"
                    if name == "delta"
                    else "above 0 and finite"
                )
                raise MiaError(f"{name} = {value!r}: a number {span} is needed.")
            object.__setattr__(self, name, float(value))  # 1 and 1.0 are to have one key

    def delta_for(self, size: int) -> float:
        """Delta for a training set of `size` records."""
        return 1 / size if self.delta is None else self.delta


@contextmanager
def _calm():
    """Within the block, silence two warnings: the accountant's grid of orders ends (its bound
    holds, if loosely); inputs need no gradient."""
    with warnings.catch_warnings():
        for words in (
            "Optimal order is the (largest|smallest) alpha",
            "Full backward hook is firing",
        ):
            warnings.filterwarnings("ignore", words, UserWarning)
        yield


def missing_dependency() -> str:
    """Why nothing can be trained privately here, or an empty string."""
    try:
        import opacus  # noqa: F401
    except ImportError:
        return "Private training needs Opacus: install it, pip install 'mia_lib[dp]' (in a clone: pip install -e '.[dp]')"
    return ""


@lru_cache
def noise_multiplier(privacy: Privacy, size: int, config: TrainConfig) -> float:
    """Sigma with which training on so many records spends at most `privacy.epsilon`, and at least 99 % of it, by Opacus' RDP
    accountant; an epoch has n / batch size steps, rounded up. That Opacus is not installed or no noise suffices is an
    error."""
    if missing_dependency():
        raise MiaError(f"{missing_dependency()}.")
    from opacus.accountants.utils import get_noise_multiplier

    steps = config.epochs_trained * math.ceil(size / config.batch_size)
    delta = privacy.delta_for(size)
    try:
        with _calm():
            if not steps:
                return 0.0
            return float(
                get_noise_multiplier(
                    target_epsilon=privacy.epsilon,
                    target_delta=delta,
                    sample_rate=config.batch_size / size,
                    steps=steps,
                    accountant="rdp",
                    epsilon_tolerance=0.01 * privacy.epsilon,
                )
            )
    except ValueError as error:
        raise MiaError(
            f"epsilon = {privacy.epsilon:g} is less than the accountant can show with delta = {delta:g}, however "
            "much noise there is. Raise epsilon or delta."
        ) from error


@lru_cache
def _epsilon_of_steps(noise: float, rate: float, steps: int, delta: float) -> float:
    """Epsilon of so many steps by Opacus' RDP accountant."""
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    accountant.history = [(noise, rate, steps)] if steps else []
    with _calm():
        return float(accountant.get_epsilon(delta))


def _check_layers(models: Ensemble) -> None:
    """Refuse a network whose gradients of single records Opacus cannot tell, by its list of layers and on a batch of two."""
    from opacus.grad_sample import GradSampleModule
    from opacus.utils.module_utils import trainable_modules
    from opacus.validators import ModuleValidator

    network = models.untrained()
    refused = f"architecture = {models.config.architecture!r} cannot be trained privately"
    if models.config.loss == NEXT_TOKEN:
        raise MiaError(f"{refused}: that is of classifiers, and it predicts tokens.")
    for name, layer in trainable_modules(network):
        validate = ModuleValidator.VALIDATORS.get(type(layer))
        if validate and (problems := validate(layer)):
            raise MiaError(
                f"{refused}: its layer {name} ({type(layer).__name__}) has no gradients of single records. Take an "
                "architecture without it, such as watson_cnn, or put another layer in its place: group "
                f"normalisation for batch normalisation, opacus.layers for attention. Opacus says: {problems[0]}"
            )
    records = np.resize(models.records.x[:2], (2, *models.records.shape))
    try:
        with _calm():
            watched = GradSampleModule(network, loss_reduction="sum")
            scaling = architectures.feeding(network, records, models.config.scaling)
            watched(architectures.to_input(records, scaling)).sum().backward()
    except Exception as error:
        raise MiaError(
            f"{refused}: Opacus cannot differentiate it for single records ({type(error).__name__}: "
            f"{first_line(error)}). Take another architecture."
        ) from error
    for name, weight in network.named_parameters():
        if weight.requires_grad and getattr(weight, "grad_sample", None) is None:
            raise MiaError(
                f"{refused}: its weights {name} have no gradients of single records, for forward does not use the "
                "layer, or uses it where Opacus cannot see it. Leave the layer out, or call it in forward."
            )


def _optimizer(weights: list, config: TrainConfig, **private):
    from opacus.optimizers import DPOptimizer
    from opacus.optimizers.optimizer import _generate_noise

    class Private(DPOptimizer):
        """Opacus' optimiser, but its noise is drawn on the CPU wherever the gradients are, so
        models do not depend on the device. `canary_sum` [P], if any, is added to the sum of a
        step's gradients."""

        canary_sum: torch.Tensor | None = None

        def add_noise(self):
            for p in self.params:
                noise = _generate_noise(
                    self.noise_multiplier * self.max_grad_norm, torch.empty(p.shape), self.generator
                )
                p.grad = p.summed_grad.view_as(p) + noise.to(p.device)
            if self.canary_sum is not None:
                for p, part in zip(
                    self.params,
                    self.canary_sum.split([p.numel() for p in self.params]),
                    strict=True,
                ):
                    p.grad += part.view_as(p).to(p.device)

    kind, options = torch.optim.Adam, {}
    if config.optimizer == "sgd":
        kind, options = torch.optim.SGD, {"momentum": config.momentum, "nesterov": config.nesterov}
    return Private(
        kind(weights, config.learning_rate, weight_decay=config.weight_decay, **options), **private
    )


def fit(
    x: np.ndarray,
    y: np.ndarray,
    classes: int,
    config: TrainConfig,
    privacy: Privacy,
    index: int = 0,
    device: torch.device | None = None,
    start: dict[str, np.ndarray] | None = None,
    size: int | None = None,
    canaries: Sequence[int] = (),
) -> Outcome:
    """Train one model privately in this process.

    Args:
        x, y, classes, config, index: as for `training.fit`.
        privacy: how privately.
        device: the CPU when None.
        start: `state_dict` to go on from; random weights when None.
        size: n, from which the chance that a record is drawn, the number of steps and the noise follow; len(x) when None. An
            audit gives a number that does not depend on who is in.
        canaries: numbers of parameters, in the order of `nn.Module.parameters`. Each adds a Dirac canary to the training set
            (Nasr et al. 2021): it is drawn as a record is, and its gradient is C at that parameter and 0 at all others.

    Returns:
        its `state_dict`; `history` float32 [epochs, 2], mean loss and accuracy of the records drawn, 0 where none was;
        `epsilon`, what the accountant says was spent, and `noise_multiplier`, both float64 [].

    Raises:
        MiaError: as for `noise_multiplier`.
    """
    size = len(x) if size is None else check_whole("size", size, 1)
    began = time.perf_counter()
    rate = config.batch_size / size
    noise = noise_multiplier(privacy, size, config)
    from opacus.grad_sample import GradSampleModule
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    device, seed = device or torch.device("cpu"), recipe.seed_of(config, index)
    network = architectures.build(config.architecture, x.shape[1:], classes, seed=seed)
    if start:
        network.load_state_dict(
            {name: torch.from_numpy(np.array(value)) for name, value in start.items()}
        )
    # other numbers than those that made the weights
    generator = torch.Generator().manual_seed(seed + 1)
    scaling = architectures.feeding(network, x, config.scaling)
    inputs = architectures.to_input(torch.from_numpy(np.array(x)), scaling).to(device)
    labels = torch.from_numpy(np.array(y, np.int64)).to(device)
    history = np.zeros((config.epochs_trained, 2), np.float32)
    # The loss is summed, for the mean of an empty batch is no number; the optimiser divides by the expected batch size.
    watched = GradSampleModule(network.to(device).train(), loss_reduction="sum")
    optimizer = _optimizer(
        list(network.parameters()),
        config,
        noise_multiplier=noise,
        max_grad_norm=privacy.clip,
        expected_batch_size=config.batch_size,
        generator=generator,
    )
    steps = math.ceil(size / config.batch_size)
    batches = UniformWithReplacementSampler(
        num_samples=len(x), sample_rate=rate, generator=generator, steps=steps
    )
    canaries = torch.tensor([*canaries], dtype=torch.long)
    parameters = sum(p.numel() for p in network.parameters())
    with devices.plain_float32(), _calm():
        for epoch in range(config.epochs_trained):
            total, drawn_records = torch.zeros(2, device=device), 0
            for step, batch in enumerate(batches):
                for group in optimizer.param_groups:
                    group["lr"] = recipe.learning_rate(
                        config, epoch + step * config.batch_size / size
                    )
                picked = torch.tensor(batch, dtype=torch.long).to(device)
                views = recipe.draw_views(config.augmentation, len(picked), generator).to(device)
                # Of images whose channels lie last in memory Opacus makes wrong gradients; this puts them in order.
                drawn = recipe.augment(inputs[picked], config.augmentation, views)
                outputs = watched(drawn.clone(memory_format=torch.contiguous_format))
                loss = record_loss(outputs, labels[picked], config.loss).sum()
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                if len(canaries):
                    batch_canaries = canaries[torch.rand(len(canaries), generator=generator) < rate]
                    optimizer.canary_sum = (
                        torch.bincount(batch_canaries, minlength=parameters) * privacy.clip
                    )
                optimizer.step()
                total += torch.stack([loss.detach(), (outputs.argmax(-1) == labels[picked]).sum()])
                drawn_records += len(picked)
            history[epoch] = total.cpu().numpy() / max(drawn_records, 1)
            if not np.isfinite(history[epoch, 0]):
                return Outcome(
                    {},
                    time.perf_counter() - began,
                    (
                        f"Model {index} ({config.architecture}) diverged: its loss is "
                        f"{history[epoch, 0]} in epoch {epoch + 1} of {config.epochs}. Lower learning_rate "
                        f"({config.learning_rate:g} was given) or clip ({privacy.clip:g})."
                    ),
                )
    spent = _epsilon_of_steps(noise, rate, config.epochs_trained * steps, privacy.delta_for(size))
    arrays = {
        name: value.detach().cpu().contiguous().numpy()
        for name, value in network.state_dict().items()
    }
    return Outcome(
        {
            **arrays,
            "history": history,
            "epsilon": np.array(spent),
            "noise_multiplier": np.array(noise),
        },
        time.perf_counter() - began,
    )


def _fit_task(task: Task, privacy: Privacy, where: torch.device) -> Outcome:
    if where.type == "cpu":
        torch.set_num_threads(1)  # an executor's process may not be one of ours
    [rows], [index], [start] = task.rows, task.indices, task.start or [None]
    return fit(
        ensemble.open_records(task.x)[rows],
        task.y[rows],
        task.classes,
        task.config,
        privacy,
        index,
        where,
        start,
    )


def _run_here(function, tasks, finished, label, *_) -> None:
    with progress.Bar(label, len(tasks)) as bar:
        for position, task in enumerate(tasks):
            finished(position, function(*task))
            bar.advance()


@dataclass(frozen=True, eq=False)
class PrivateEnsemble(Ensemble):
    """M private models, trained when first needed; `privacy` of each, and the attributes of `Ensemble`."""

    privacy: Privacy = field(kw_only=True)

    def spec(self, index: int) -> dict:
        """Spec of model `index`, plain data that determine it: that of `Ensemble`, and the
        privacy."""
        return {**super().spec(index), "privacy": asdict(self.privacy)}

    def _fit_in_pool(self, where: torch.device, todo: list[int]) -> list[str]:
        if missing_dependency():
            raise MiaError(f"{missing_dependency()}.")
        # most records: hardest to reach
        noise_multiplier(self.privacy, int(self.members.sum(1).max()), self.config)
        diverged, path = [], ensemble.records_file(self.records)
        tasks = [(self._task([m], path), self.privacy, where) for m in todo]
        run = pool.run_tasks if where.type == "cpu" else _run_here
        run(
            _fit_task,
            tasks,
            lambda k, outcome: self._keep(todo[k], outcome, where, diverged),
            f"training {self.label}",
            self.workers,
            self.executor,
            None,
            self.config.architecture,
        )
        return diverged

    _fit_on_card = _fit_in_pool


def train(
    records: Dataset,
    members: np.ndarray,
    config: TrainConfig,
    privacy: Privacy,
    *,
    label: str = "private models",
    workers: int | None = None,
    executor: Executor | None = None,
    device: str | None = None,
    start: tuple[Ensemble, Sequence[int]] | None = None,
) -> PrivateEnsemble:
    """Describe an ensemble of private models; what the store holds needs neither training nor Opacus.

    Args:
        records, members, config, label, workers, executor, device, start: as for `training.train`. A model is a task of the
            pool, or trained by itself on a graphics card. The guarantee does not cover the records behind `start`.
        privacy: of each model.

    Raises:
        MiaError: as for `training.train`; a batch larger than a training set, bfloat16, delta = 1/n with n = 1, a network that
            Opacus cannot differentiate for single records, such as one with batch normalisation. That Opacus is not installed,
            or no noise suffices, is said before the first model is trained.
    """
    if config.precision != "float32":
        raise MiaError(
            f"precision = {config.precision!r}: private training needs 'float32', for clipping is to be exact."
        )
    plain = ensemble.train(
        records,
        members,
        config,
        label=label,
        workers=workers,
        executor=executor,
        device=device,
        start=start,
    )
    least = int(plain.members.sum(1).min())
    if config.batch_size > least:
        raise MiaError(
            f"batch_size = {config.batch_size}, but a training set has {least} records: each is drawn with "
            f"probability batch_size / n, so at most {least} is allowed."
        )
    if privacy.delta is None and least == 1:
        raise MiaError(
            "delta = None means 1/n, which must be below 1, and a training set has 1 record: give delta."
        )
    models = PrivateEnsemble(
        **{f.name: getattr(plain, f.name) for f in fields(plain)}, privacy=privacy
    )
    if not missing_dependency():
        _check_layers(models)
    return models
