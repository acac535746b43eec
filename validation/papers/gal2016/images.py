"""Images other than test digits, made from installed packages; nothing is downloaded.

All have the size of the digits and values from 0 to 1. `OTHERS` describes each kind.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from validation.training.data import DataError, Split, digits

Images = npt.NDArray[np.float32]

# Latin letters that do not look like digits: not B, G, I, L, O, Q, S, Z.
LETTERS = "ACDEFHJKMNPRTUVWXY"
# DejaVu's faces, which matplotlib includes.
FACES = (
    *(f"DejaVuSans{face}" for face in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSansMono{face}" for face in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{face}" for face in ("", "-Bold", "-Italic", "-BoldItalic")),
)
_DRAWN = 96  # pixels of a letter before it is reduced
_BOX = 20 / 28  # the share of an MNIST image's width that a digit takes


def side(images: Images) -> int:
    width = math.isqrt(images.shape[1])
    if width * width != images.shape[1]:
        raise DataError(f"images of {images.shape[1]} pixels are not square: name others")
    return width


def rotated(images: Images, degrees: float) -> Images:
    """Rotate images counterclockwise about their centre, by linear interpolation."""
    from scipy import ndimage

    if not degrees:
        return images
    width = side(images)
    turned = ndimage.rotate(
        images.reshape(-1, width, width), degrees, axes=(2, 1), reshape=False, order=1
    )
    return _flat(turned)


def letters(test: Images, count: int, rng: np.random.Generator) -> Images:
    """Draw letters in twelve faces like MNIST's digits: in a box, centred by mass.

    Each letter is rotated by up to 15 degrees in either direction.
    """
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont

    width, folder = side(test), Path(get_data_path()) / "fonts" / "ttf"
    fonts = [ImageFont.truetype(str(folder / f"{face}.ttf"), _DRAWN) for face in FACES]
    found = np.zeros((count, width, width), np.float32)
    for image in found:
        drawn = Image.new("L", (2 * _DRAWN, 2 * _DRAWN))
        letter, font = LETTERS[rng.integers(len(LETTERS))], fonts[rng.integers(len(fonts))]
        ImageDraw.Draw(drawn).text((_DRAWN // 2, _DRAWN // 2), letter, fill=255, font=font)
        drawn = drawn.rotate(rng.uniform(-15.0, 15.0), Image.Resampling.BILINEAR)
        drawn = drawn.crop(drawn.getbbox())
        scale = _BOX * width / max(drawn.size)
        size = [max(1, round(scale * length)) for length in drawn.size]
        small = drawn.resize((size[0], size[1]), Image.Resampling.BOX)
        _place(np.asarray(small, np.float32) / 255.0, image)
    return _flat(found)


def _place(small: npt.NDArray[np.float32], image: npt.NDArray[np.float32]) -> None:
    """Put a small image into a larger one, its centre of mass as near the middle as it fits."""
    corner = []
    for axis in (0, 1):
        mass = small.sum(1 - axis)
        centre = float((mass * (np.arange(len(mass)) + 0.5)).sum() / mass.sum())
        free = image.shape[axis] - len(mass)
        corner.append(min(max(round(image.shape[axis] / 2 - centre), 0), free))
    (i, j), (height, width) = corner, small.shape
    image[i : i + height, j : j + width] = small


def photographs(test: Images, count: int, rng: np.random.Generator) -> Images:
    """Cut grey patches out of the two photographs of scikit-learn."""
    from sklearn.datasets import load_sample_images

    width = side(test)
    grey = [np.asarray(photo, np.float32).mean(2) / 255.0 for photo in load_sample_images().images]
    found = np.zeros((count, width, width), np.float32)
    for image in found:
        photo = grey[rng.integers(len(grey))]
        i, j = (rng.integers(length - width + 1) for length in photo.shape)
        image[...] = photo[i : i + width, j : j + width]
    return _flat(found)


def inverted(test: Images, count: int, rng: np.random.Generator) -> Images:
    """Take test digits in black on white."""
    return 1.0 - _some(test, count, rng)


def permuted(test: Images, count: int, rng: np.random.Generator) -> Images:
    """Take test digits, with the same permutation of the pixels for all."""
    order = rng.permutation(test.shape[1])
    return _some(test, count, rng)[:, order]


def noise(test: Images, count: int, rng: np.random.Generator) -> Images:
    """Draw each pixel independently, from 0 to 1."""
    return rng.random((count, test.shape[1]), dtype=np.float32)


def other_digits(test: Images) -> Split:
    """Take scikit-learn's 1,797 digits, enlarged from 8 to 20 pixels within 28."""
    from scipy import ndimage

    found, width = digits(), side(test)
    x = np.concatenate([found.train.x, found.test.x]).reshape(-1, 8, 8)
    inner = round(_BOX * width)
    large = ndimage.zoom(x, (1, inner / 8, inner / 8), order=1)
    margin = width - inner
    before = margin // 2
    padded = np.pad(large, ((0, 0), *[(before, margin - before)] * 2))
    return Split(_flat(padded), np.concatenate([found.train.y, found.test.y]))


def _some(test: Images, count: int, rng: np.random.Generator) -> Images:
    return test[rng.permutation(len(test))[:count]]


def _flat(images: npt.NDArray[np.floating]) -> Images:
    return np.ascontiguousarray(np.clip(images, 0.0, 1.0), np.float32).reshape(len(images), -1)


class Other(NamedTuple):
    """A kind of images, and a function that makes some in the size of the test digits."""

    title: str
    make: Callable[[Images, int, np.random.Generator], Images]


OTHERS = {
    "letters": Other("letters, in the twelve DejaVu faces of matplotlib", letters),
    "photographs": Other("patches of scikit-learn's two photographs", photographs),
    "inverted": Other("test digits, black on white", inverted),
    "permuted": Other("test digits, pixels in another order", permuted),
    "noise": Other("uniform noise", noise),
}
