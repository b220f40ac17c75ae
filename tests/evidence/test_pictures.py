import io

import numpy as np
import pytest
from PIL import Image

from mia_lib.evidence import pictures


def png(size):
    pixels = np.full((*size[::-1], 3), 255, np.uint8)
    pixels[:, : size[0] // 2] = 0
    made = io.BytesIO()
    Image.fromarray(pixels).save(made, "PNG")
    return made.getvalue()


@pytest.mark.parametrize("title", ["Short", "A title that is far too long to stand on one line of a card in large letters"])
def test_a_card_has_the_size_that_is_asked_for_and_holds_title_and_figure(title):
    card = np.asarray(Image.open(io.BytesIO(pictures.card(png((800, 400)), title))).convert("L"))
    assert card.shape == pictures.CARD[::-1]
    assert (card[:12] < 200).all() and (card[20:pictures.HEAD] < 100).any(), "bar and title"
    assert (card[:, -pictures.MARGIN // 2:][20:] > 200).all(), "nothing runs over the edge"
    assert (card[pictures.HEAD + 50:] < 50).any(), "the figure"
