"""Numbers a model gives a record: the raw material of every attack.

Each function takes an ensemble of M models and N records and returns an array [M, N] (logits and probabilities
[M, N, K]). One pass over the records gives all scalar signals of a model; they are kept in the store, so models are
only trained or loaded when a signal is not there yet. Outputs are float32, but what is derived from them is computed
in float64: in float32 the loss of a confident record rounds to zero and the ranking of members is lost.

Networks are evaluated in evaluation mode, a batch of records at a time; where memory runs out the batch is halved. Device,
batch and group enter by the rounding of sums only.
"""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

import copy
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy.special import logsumexp
from torch import nn
from torch.autograd.graph import get_gradient_edge
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from mia_lib import models as architectures
from mia_lib.checks import check_labels, check_numbers
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_choice, check_type, check_whole, first_line
from mia_lib.signals import tokens
from mia_lib.signals.from_outputs import scalars
from mia_lib.signals.mapping import map_models, spread
from mia_lib.training import Ensemble, devices, ensemble
from mia_lib.training.losses import LOSSES, NEXT_TOKEN, precise_loss
from mia_lib.training.stacking import Stacked

PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


def batch_size(device: torch.device) -> int:
    """Number of records in a batch: as many as stay in the caches of a processor, or as fill a
    graphics card."""
    return 8192 if devices.is_card(device) else 500


def device_of(model: nn.Module) -> torch.device:
    """Device of a model's parameters, or of its buffers; the CPU if it has neither."""
    tensor = next(model.parameters(), next(model.buffers(), None))
    return torch.device("cpu") if tensor is None else tensor.device


def check_records(x):
    """Records [N, ...], at least one, as an array or as a tensor that needs no gradient."""
    x = x.detach() if isinstance(x, torch.Tensor) else check_numbers("x", x)
    if x.ndim < 2 or not len(x):
        raise MiaError(f"x has shape {tuple(x.shape)}: at least one record is needed, [N, ...].")
    return x


def check_batch(batch: int | None) -> int | None:
    """Check how many records to take at a time, and return it; None leaves that to the function."""
    return None if batch is None else check_whole("batch", batch, 1)


def inputs(
    x,
    start: int,
    stop: int,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    scaling: str | tuple = "-1 to 1",
) -> torch.Tensor:
    """Records `start` to `stop` of `x` as networks on `device` take them: bytes go there before they become numbers.

    Args:
        x: in the form of `Dataset.x`, [N, ...], or images of a floating type in any layout; NumPy or a tensor.
        scaling: as for `models.to_input`, of uint8 images and of token ids.
    """
    part = (
        x[start:stop] if isinstance(x, torch.Tensor) else torch.from_numpy(np.array(x[start:stop]))
    )
    network_input = architectures.to_input(part.to(device), scaling)
    return (
        network_input.to(dtype) if network_input.is_floating_point() else network_input
    )  # token ids


def scaling_of(model: nn.Module, x, scaling: str | tuple | None) -> str | tuple:
    """The scaling of uint8 images for a model: as given, or what the model was trained on; "tokens" for token ids.

    Models of an ensemble know it; other networks of this library are taken to be trained on [-1, 1], and those of others, too,
    with a warning.
    """
    bytes_in = len(np.shape(x)) == 4 and "uint8" in str(getattr(x, "dtype", ""))
    if scaling is None and (feeding := architectures.feeding(model, x)) == architectures.TOKENS:
        return feeding
    if scaling is None and bytes_in and architectures.input_scaling(model) is not None:
        return architectures.input_scaling(model)
    if (
        scaling is None
        and bytes_in
        and not any(isinstance(part, architectures.Network | Stacked) for part in model.modules())
    ):
        warnings.warn(
            f"{type(model).__name__} is not a network of models.build, and is fed with pixels from -1 to 1. If it "
            "was trained on others, its outputs are wrong: give scaling = '0 to 1' (torchvision's ToTensor), "
            "'0 to 255', (mean, spread) or, if that is right, '-1 to 1'; or images as floats.",
            UserWarning,
            stacklevel=3,
        )
    return "-1 to 1" if scaling is None else scaling


@torch.no_grad()
def _batched(
    function: Callable, model: nn.Module, x, scaling: str | tuple = "-1 to 1"
) -> torch.Tensor:
    device = device_of(model)

    def part(start: int, stop: int) -> torch.Tensor:
        return function(inputs(x, start, stop, device, torch.float32, scaling)).cpu()

    with devices.plain_float32():
        parts = devices.stream(part, len(x), batch_size(device))
    return torch.cat(parts, -2)


def model_outputs(model: nn.Module, x, scaling: str | tuple | None = None) -> np.ndarray:
    """Logits float32 [N, K] of one model, in evaluation mode, batch by batch, on the device that it is on.

    Args:
        model: any network that gives [B, K], or a dictionary or an object with `logits` [B, K].
        x: records in the form of `Dataset.x`, [N, ...], or images of a floating type, which are passed as they are.
        scaling: of uint8 images, what the network was trained on, see `models.to_input`; [-1, 1] when None.

    Raises:
        MiaError: a network that does not take such records, or returns something else.

    Warns:
        UserWarning: a network from elsewhere is given uint8 images without a scaling.
    """
    check_type("model", model, nn.Module, "Of a function give signals.from_function(function, x).")
    x = check_records(x)
    model.eval()
    try:
        return _batched(
            lambda part: _one_row_a_record(model, architectures.logits_of(model, model(part))),
            model,
            x,
            scaling_of(model, x, scaling),
        ).numpy()
    except MiaError:
        raise
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError, KeyError) as error:
        half = sorted(
            {str(weight.dtype)[6:] for weight in model.parameters()} & {"float16", "bfloat16"}
        )
        remedy = (
            f"Its parameters are {' and '.join(half)}, and records come in float32: give model.float()."
            if half
            else "Give the network that was trained on such records, or wrap it in a function that prepares them."
        )
        raise MiaError(
            f"model = {type(model).__name__} does not take records of shape {getattr(x, 'shape', ())[1:]} "
            f"({first_line(error)}). {remedy}"
        ) from error


def _one_row_a_record(model: nn.Module, logits: torch.Tensor) -> torch.Tensor:
    if logits.ndim > 2:
        raise MiaError(
            f"model = {type(model).__name__} gives outputs of shape {tuple(logits.shape)}: logits [B, K] are needed, a row a "
            "record. Of a language model, which has a row for each token, signals.tokens has the signals."
        )
    return logits


def features(model: nn.Module, x, scaling: str | tuple | None = None) -> np.ndarray:
    """Penultimate activations float32 [N, F] of one model; arguments as for `model_outputs`.

    Raises:
        MiaError: a model without a `body`, the part that gives them.
    """
    if not hasattr(model, "body"):
        raise MiaError(
            f"model = {type(model).__name__} has no body, the part that gives features [B, F]: wrap it as "
            "models.Network(body, head), or give model_outputs the body alone."
        )
    x = check_records(x)
    model.eval()
    return _batched(
        lambda part: architectures.features(model, part), model, x, scaling_of(model, x, scaling)
    ).numpy()


def _outputs_stacked(networks: list[nn.Module], x) -> np.ndarray:
    """Logits float32 [G, N, K] of G equal networks, each batch through all of them at once."""
    together = Stacked(networks).eval()
    return _batched(
        lambda part: together(part.expand(len(networks), *part.shape)),
        together,
        x,
        scaling_of(networks[0], x, None),
    ).numpy()


def classes_of(model: nn.Module, x, scaling: str | tuple = "-1 to 1") -> int:
    """Number of classes that a network in evaluation mode tells apart, from its outputs of the
    first record; other outputs than [1, K] with K >= 2 are refused, and a model without
    parameters."""
    weight = next(model.parameters(), None)
    if weight is None:
        raise MiaError(
            f"model = {type(model).__name__} has no parameters: there is nothing to take derivatives of. Give the "
            "network itself, with its layers as attributes."
        )
    with torch.no_grad():
        outputs = architectures.logits_of(
            model, model(inputs(x, 0, 1, weight.device, weight.dtype, scaling))
        )
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        raise MiaError(
            f"model = {type(model).__name__} gives outputs of shape {tuple(outputs.shape)} for one record: logits "
            "[1, K] of at least two classes are needed. Of one sigmoid output s [N, 1] make two, "
            "torch.cat([0 * s, s], 1)."
        )
    return outputs.shape[1]


def in_precision(model: nn.Module, dtype: str) -> nn.Module:
    """A copy of a model that computes in float32 or float64, in evaluation mode, its parameters constant."""
    check_choice("dtype", dtype, PRECISIONS)
    check_type(
        "model",
        model,
        nn.Module,
        "models.build makes one, and models.model(0) is the first of an ensemble.",
    )
    return (
        architectures.give_logits(copy.deepcopy(model).eval())
        .to(PRECISIONS[dtype])
        .requires_grad_(False)
    )


# ---------------------------------------------------------------------------------------------------------- from logits


def _outputs_task(networks, x, labels, loss, full):
    if loss == NEXT_TOKEN:
        return [{"loss": tokens.model_loss(network, x)} for network in networks]
    outputs = (
        _outputs_stacked(networks, x) if len(networks) > 1 else [model_outputs(networks[0], x)]
    )
    return [{"logits": z} if full else scalars(z, labels, loss) for z in outputs]


def _gather(
    models: Ensemble,
    records: Dataset,
    name: str,
    full: bool = False,
    judged: np.ndarray | None = None,
) -> np.ndarray:
    check_type("models", models, Ensemble, "training.train describes one.")
    if models.config.loss == NEXT_TOKEN and name != "loss":
        raise MiaError(
            f"{models!r} are language models, which have no {name}: signals.loss gives the loss of a record, and "
            "signals.tokens.statistics what is said of each token."
        )
    spec = {"kind": "logits" if full else "signals"}
    return spread(
        map_models(
            _outputs_task,
            models,
            spec,
            "signals",
            records=records,
            judged=judged,
            at_once=ensemble.MOST_AT_ONCE,
            full=full,
        ),
        name,
        judged,
    )


def loss(models: Ensemble, records: Dataset, judged: np.ndarray | None = None) -> np.ndarray:
    """Loss of each record under each model, float32 [M, N], in nats for cross-entropy.

    It is the loss that the models were trained with; float64 for two of them, see `scalars`.

    Args:
        judged: bool [M, N], the records that each model is asked about; the others are not a number.
    """
    return _gather(models, records, "loss", judged=judged)


def least_loss(models: Ensemble, records: Dataset, judged: np.ndarray | None = None) -> np.ndarray:
    """Smallest loss that any label would have, [M, N]; needs no label.

    For cross-entropy -log max p, without losing what is next to zero: the negative of the confidence of Watson et al. (2022,
    Eq. 3, with the minimum that its right-hand side has and its left-hand side misprints).

    `judged` as for `loss`.
    """
    return _gather(models, records, "least_loss", judged=judged)


def logit_scaled_confidence(models: Ensemble, records: Dataset) -> np.ndarray:
    """log(p_y / (1 - p_y)), float32 [M, N] (Carlini et al. 2022, section V-B)."""
    return _gather(models, records, "logit_scaled_confidence")


def correctness(models: Ensemble, records: Dataset, judged: np.ndarray | None = None) -> np.ndarray:
    """True where the predicted class is the label, bool [M, N]; False for records not `judged`,
    which is as for `loss`."""
    return _gather(models, records, "correctness", judged=judged) > 0.5


def logits(models: Ensemble, records: Dataset) -> np.ndarray:
    """Outputs before the softmax, float32 [M, N, K]."""
    return _gather(models, records, "logits", full=True)


def probabilities(models: Ensemble, records: Dataset) -> np.ndarray:
    """Softmax of the logits, float32 [M, N, K]."""
    z = logits(models, records).astype(np.float64)
    return np.exp(z - logsumexp(z, -1, keepdims=True)).astype(np.float32)


# -------------------------------------------------------------------------------------------------------- from gradients


def gradient_norm(
    models: Ensemble, records: Dataset, judged: np.ndarray | None = None
) -> np.ndarray:
    """Euclidean norm of the gradient of each record's loss with respect to all parameters, float32 [M, N].

    ``||grad l(theta, z)||_2``, whose negative is the gradient-norm score of Watson et al. (2022, Eq. 2). Squares are summed in
    float64, for those of confident records would vanish in float32. `judged` as for `loss`.
    """
    results = map_models(
        _gradient_norm_task,
        models,
        {"kind": "gradient_norm"},
        "gradient norms",
        records=records,
        judged=judged,
    )
    return spread(results, "norm", judged)


def _gradient_norm_task(networks, x, labels, loss):
    [network] = networks
    network, scaling = in_precision(network, "float32"), scaling_of(network, x, None)
    if has_norms(network):
        return [{"norm": _norms(network, x, labels, loss, scaling)}]

    def norm(gradients: dict) -> torch.Tensor:
        return torch.linalg.vector_norm(
            torch.stack([_norm(g) for g in gradients.values()]), 2, 0
        ).float()

    return [
        {
            "norm": np.concatenate(
                list(_gradients(network, x, labels, loss, "float32", norm, scaling=scaling))
            )
        }
    ]


def _norms(network, x, labels, loss, scaling) -> np.ndarray:
    """Euclidean norms [N] of the gradients of a network with `has_norms`."""
    device = device_of(network)
    labels = torch.from_numpy(np.array(labels, np.int64)).to(device)

    def part(i: int, j: int) -> np.ndarray:
        records = inputs(x, i, j, device, torch.float32, scaling)
        return norms_of_batch(network, records, labels[i:j], loss).float().cpu().numpy()

    with devices.plain_float32():
        return np.concatenate(devices.stream(part, len(x), batch_size(device) // 8))


def record_gradients(
    model: nn.Module,
    x,
    y: np.ndarray,
    loss: str = "cross_entropy",
    dtype: str = "float32",
    batch: int | None = None,
    scaling: str | tuple | None = None,
) -> Iterator[np.ndarray]:
    """Gradients of each record's loss with respect to the parameters, a block of records after the other.

    Args:
        model: on the device that is to compute; taken in evaluation mode.
        x: records in the form of `Dataset.x`, [N, ...], or images of a floating type, which are passed as they are.
        y: labels int [N].
        loss: a name of `LOSSES`.
        dtype: "float32" or "float64".
        batch: records in a block; by default so many that a block takes at most 128 MB (4 GB on a graphics card).
        scaling: of uint8 images, as for `model_outputs`.

    Yields:
        [B, P] of type `dtype`, parameters in the order of `nn.Module.parameters`; N rows in all, in the order of `x`.

    Raises:
        MiaError: an unknown loss or dtype, labels that are no class, a model without parameters or of one output.

    Warns:
        UserWarning: a network from elsewhere is given uint8 images without a scaling.
    """
    check_choice("loss", loss, LOSSES)
    network, x, batch = in_precision(model, dtype), check_records(x), check_batch(batch)
    scaling = scaling_of(model, x, scaling)
    labels = check_labels("y", y, classes_of(network, x, scaling), len(x))
    return _gradients(
        network,
        x,
        labels,
        loss,
        dtype,
        lambda named: torch.cat([g.flatten(1) for g in named.values()], 1),
        batch,
        scaling,
    )


def _gradients(model, x, y, loss, dtype, use, batch=None, scaling="-1 to 1"):
    """`use` of the gradients by name, each [B, ...], of one block after the other, as NumPy arrays; model `in_precision`."""
    device = device_of(model)
    weights = dict(model.named_parameters())
    labels = torch.from_numpy(np.array(y, np.int64)).to(device)
    if batch is None:
        block = 2**32 if devices.is_card(device) else 2**27
        batch = max(1, min(batch_size(device), block // sum(w.nbytes for w in weights.values())))

    def record(weights, x, y):
        return precise_loss(functional_call(model, weights, (x[None],)), y[None], loss)[0]

    each, start = vmap(grad(record), in_dims=(None, 0, 0)), 0
    while start < len(x):

        def part(i: int, j: int, start: int = start) -> np.ndarray:
            # channels last, PyTorch cannot batch some convolutions over records
            records = inputs(
                x, start + i, start + j, device, PRECISIONS[dtype], scaling
            ).contiguous()
            return use(each(weights, records, labels[start + i : start + j])).cpu().numpy()

        with devices.plain_float32():
            blocks = devices.stream(part, min(batch, len(x) - start), batch)
        yield from blocks
        batch = max(map(len, blocks))  # smaller from here on where memory ran out
        start += sum(map(len, blocks))


# ------------------------------------------------------------------- the norm of each record's gradient, without the gradient

# By the weights of a linear layer the gradient of one record's loss is an outer product, delta a', of what comes back to the
# layer's output and what went in. Its norm is |delta| |a| (Goodfellow 2015, arXiv:1510.01799), and the matrix, in which most
# parameters of small networks lie, is never made (benchmarks/norms.py). Gradients by the weights of a convolution, a batch
# normalisation or a linear layer that serves several places of a record are sums over places and are made, from one pass
# forward and one back for a whole batch of records.


def _norm(gradient: torch.Tensor) -> torch.Tensor:
    """Norm of each record's gradient, [B, ...] -> float64 [B]; the squares of a confident record's
    gradient would vanish in float32."""
    return torch.linalg.vector_norm(gradient.flatten(1), 2, 1, dtype=torch.float64)


def _linear(layer: nn.Linear, inputs: torch.Tensor, back: torch.Tensor) -> torch.Tensor:
    # the layer serves several places of a record, over which its gradient is a sum
    if inputs.ndim > 2:
        back = back.flatten(1, -2)
        weight = _norm(torch.bmm(back.transpose(1, 2), inputs.flatten(1, -2)))
        return weight if layer.bias is None else torch.hypot(weight, _norm(back.sum(1)))
    length = _norm(inputs)
    return _norm(back) * (
        length if layer.bias is None else torch.hypot(length, torch.ones_like(length))
    )


def _convolution(layer: nn.Conv2d, inputs: torch.Tensor, back: torch.Tensor) -> torch.Tensor:
    patches = functional.unfold(
        inputs, layer.kernel_size, layer.dilation, layer.padding, layer.stride
    )
    weight = _norm(torch.bmm(back.flatten(2), patches.transpose(1, 2)))
    return weight if layer.bias is None else torch.hypot(weight, _norm(back.sum((2, 3))))


def _normalisation(layer: nn.BatchNorm2d, inputs: torch.Tensor, back: torch.Tensor) -> torch.Tensor:
    mean, spread = (
        statistic[:, None, None]
        for statistic in (layer.running_mean, torch.sqrt(layer.running_var + layer.eps))
    )
    return torch.hypot(
        _norm((back * (inputs - mean) / spread).sum((2, 3))), _norm(back.sum((2, 3)))
    )


LAYERS = {nn.Linear: _linear, nn.Conv2d: _convolution, nn.BatchNorm2d: _normalisation}


def has_norms(model: nn.Module) -> bool:
    """True if `norms_of_batch` covers a network: modules are PyTorch's and this library's, each in
    one place, and what has weights is a layer of `LAYERS` in its usual form. Modules of the user's
    own might use a weight elsewhere, too."""
    places = [module for _, module in model.named_modules(remove_duplicate=False)]
    weights = [weight for _, weight in model.named_parameters(remove_duplicate=False)]
    return (
        len(places) == len(set(places))
        and len(weights) == len(set(weights))
        and all(
            type(module).__module__.startswith(("torch.nn.", "mia_lib.models")) for module in places
        )
        and all(
            type(module) in LAYERS
            and {name for name, _ in module.named_parameters(recurse=False)} <= {"weight", "bias"}
            and not module._forward_pre_hooks  # by which spectral_norm makes a weight of another
            for module in places
            if next(module.parameters(recurse=False), None) is not None
        )
        and all(
            module.groups == 1
            and module.padding_mode == "zeros"
            and not isinstance(module.padding, str)
            for module in places
            if type(module) is nn.Conv2d
        )
        and all(
            module.running_mean is not None for module in places if type(module) is nn.BatchNorm2d
        )
    )


def norms_of_batch(
    model: nn.Module, x: torch.Tensor, labels: torch.Tensor, loss: str
) -> torch.Tensor:
    """``||grad l(theta, z)||_2`` of each record of a batch, float64 [B], under a model with `has_norms` in evaluation mode."""
    calls = []

    def keep(layer: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        # of the output before it is written over
        calls.append((layer, inputs[0].detach(), get_gradient_edge(output)))

    hooks = [
        layer.register_forward_hook(keep)
        for layer in model.modules()
        if next(layer.parameters(recurse=False), None) is not None
    ]
    try:
        losses = precise_loss(model(x.detach().requires_grad_()), labels, loss)
    finally:
        for hook in hooks:
            hook.remove()
    layers, inputs, edges = zip(*calls, strict=True)
    back = torch.autograd.grad(losses.sum(), edges)
    parts = [
        LAYERS[type(layer)](layer, *pair) for layer, *pair in zip(layers, inputs, back, strict=True)
    ]
    return torch.linalg.vector_norm(torch.stack(parts), 2, 0)
