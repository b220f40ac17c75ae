"""Pictures made of figures: with fewer colours, and the card that stands for the book elsewhere."""

from __future__ import annotations

import io

CARD, MARGIN, HEAD = (1200, 630), 48, 150  # pixels: the size that services ask for, around the figure, and for the title
INK, MARKS = "#222832", ("#0072b2", "#d55e00")  # of the book's logo: letters, members and non-members




def card(png: bytes, title: str) -> bytes:
    """A figure under the book's title, for a link to the book that is shown with a picture (Open Graph)."""
    from PIL import Image, ImageDraw, ImageFont

    made = Image.new("RGB", CARD, "white")
    draw, size = ImageDraw.Draw(made), 72
    while (font := ImageFont.load_default(size)).getlength(title) > CARD[0] - 2 * MARGIN:
        size -= 2
    draw.text((MARGIN, HEAD / 2), title, INK, font, anchor="lm")
    for place, colour in enumerate(MARKS):
        draw.rectangle((place * CARD[0] / 2, 0, (place + 1) * CARD[0] / 2, 12), colour)
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    scale = min((CARD[0] - 2 * MARGIN) / picture.width, (CARD[1] - HEAD - MARGIN) / picture.height)
    picture = picture.resize((round(scale * picture.width), round(scale * picture.height)), Image.Resampling.LANCZOS)
    made.paste(picture, ((CARD[0] - picture.width) // 2, HEAD))
    small = io.BytesIO()
    made.quantize(256, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()
