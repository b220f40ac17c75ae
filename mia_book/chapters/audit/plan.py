"""What the chapter on audits is going to measure, see `mia_book.publishing.plans`."""

from __future__ import annotations

from mia_book.chapters.audit import measure
from mia_book.publishing.plans import check_records


def planned(p):
    """Yield measurement, models and parameters at the chapter's parameters `p`."""
    check_records("network_members", 2 * p.network_members, p.network_data)
    check_records("private_members", 2 * p.private_members, p.network_data)
    check_records("forest_members", 2 * p.forest_members, p.forest_data)
    of_networks = {"architecture": p.network_architecture, "epochs": p.network_epochs}
    of_networks |= {"dataset": p.network_data, "members": p.network_members, "seed": p.seed}
    yield measure.changed_networks, p.networks, measure.NETWORK | of_networks
    of_private = {"architecture": p.private_architecture, "epochs": p.private_epochs}
    of_private |= {"dataset": p.network_data, "members": p.private_members, "seed": p.seed}
    twins = measure.TWINS | of_private
    yield measure.private_models, p.networks, twins | {"epsilons": p.epsilons}
    for epochs in p.stopped:
        yield measure.private_models, p.networks, twins | {"epsilons": [], "epochs": epochs}
