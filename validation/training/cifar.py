"""CIFAR-10 (Krizhevsky 2009): its own binary files, or all images as JPEG files in an .npz file.

An image is a row of 3072 bytes: 32 x 32 pixels of red, then of green, then of blue.
"""

import io
from collections.abc import Mapping

import numpy as np

SHAPE = (3, 32, 32)
# The version that its page calls binary: a label and an image, 10,000 times in each file.
FILES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
_RECORD = 1 + 3 * 32 * 32


class FormError(ValueError):
    """Files that are not of this form."""


def from_binary(files: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    records = {name: _records(name, files[name]) for name in FILES}
    train = np.concatenate([records[name] for name in FILES[:-1]])
    test = records[FILES[-1]]
    return {
        "x_train": train[:, 1:],
        "y_train": train[:, 0],
        "x_test": test[:, 1:],
        "y_test": test[:, 0],
    }


def _records(name: str, content: bytes) -> np.ndarray:
    count, rest = divmod(len(content), _RECORD)
    if rest or not count:
        raise FormError(
            f"{name} has {len(content)} bytes, which is no multiple of {_RECORD}, the size of a "
            "label and an image: get the file again"
        )
    return np.frombuffer(content, np.uint8).reshape(count, _RECORD)


def is_jpeg(arrays: Mapping[str, np.ndarray]) -> bool:
    return "train_jpeg" in arrays


def from_jpeg(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Decode the images, and put one of each class in turn, since they are sorted by class.

    For each part of train and test, ``PART_jpeg`` is all JPEG files, one after the other,
    ``PART_ends`` where each ends, and ``PART_labels`` the labels.
    """
    found = {}
    for part in ("train", "test"):
        needed = [f"{part}_{name}" for name in ("jpeg", "ends", "labels")]
        missing = [name for name in needed if name not in arrays]
        if missing:
            raise FormError(f"it has no array {missing[0]}: it must have {', '.join(needed)}")
        jpeg, ends, labels = (arrays[name] for name in needed)
        if len(ends) != len(labels):
            raise FormError(f"{part}_ends has {len(ends)} entries, {part}_labels {len(labels)}")
        images = np.stack([_decoded(file) for file in np.split(jpeg, ends[:-1])])
        order = np.argsort(_rank_in_class(labels), kind="stable")
        found[f"x_{part}"], found[f"y_{part}"] = images[order], labels[order]
    return found


def _decoded(file: np.ndarray) -> np.ndarray:
    try:
        from PIL import Image
    except ImportError:
        raise FormError("Pillow decodes JPEG images: pip install pillow") from None
    try:
        with Image.open(io.BytesIO(file.tobytes()), formats=["JPEG"]) as image:
            pixels = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    except OSError:
        raise FormError("an image is no JPEG file: get the file again") from None
    if pixels.shape != SHAPE:
        raise FormError(f"an image has shape {pixels.shape}: it must be {SHAPE}")
    return pixels.reshape(-1)


def _rank_in_class(labels: np.ndarray) -> np.ndarray:
    """Return how many earlier images have the same label."""
    rank = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        own = labels == label
        rank[own] = np.arange(np.count_nonzero(own))
    return rank
