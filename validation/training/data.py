"""Images with labels: MNIST and similar data from the user's files, or scikit-learn's digits.

All images can come from an .npz file with the arrays x_train, y_train, x_test and y_test. MNIST and
Fashion-MNIST can come from a folder with the four IDX files under their usual names, too, and
CIFAR-10 from the forms of `cifar`. A file may be gzipped. Nothing is downloaded, and nothing is
unpickled.
"""

import gzip
import hashlib
import io
import math
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from validation.output import CommandError
from validation.training import cifar

# The images that experiments take, and the environment variables that name their files.
VARIABLES = {
    "MNIST": "LOGUNIF_KL_MNIST",
    "Fashion-MNIST": "LOGUNIF_KL_FASHION_MNIST",
    "CIFAR-10": "LOGUNIF_KL_CIFAR10",
}
FORMS = dict.fromkeys(VARIABLES, "as .npz or IDX files") | {"CIFAR-10": "as .npz or binary files"}
CLASSES = 10

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_IDX = {
    "x_train": ("train-images", 3),
    "y_train": ("train-labels", 1),
    "x_test": ("t10k-images", 3),
    "y_test": ("t10k-labels", 1),
}
_GZIP, _ZIP = b"\x1f\x8b", b"PK"
_UNSIGNED_BYTES = 0x08  # the type code in the header of an IDX file


class DataError(CommandError):
    """Data are missing or invalid."""


class Split(NamedTuple):
    """Examples: float32 of shape (n, pixels) from 0 to 1, and int64 labels of shape (n,)."""

    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]


class Dataset(NamedTuple):
    """Training and test examples; ``sha256`` is a hash of the four arrays' bytes."""

    name: str
    train: Split
    test: Split
    sha256: str

    @property
    def kind(self) -> str:
        """The key of `VARIABLES`, if the images are known: the name up to a comma."""
        return self.name.partition(",")[0]

    @property
    def pixels(self) -> int:
        return int(self.train.x.shape[1])

    def about(self) -> dict[str, object]:
        return {
            "name": self.name,
            "training_examples": len(self.train.y),
            "test_examples": len(self.test.y),
            "pixels": self.pixels,
            "sha256": self.sha256,
        }

    @property
    def shape(self) -> tuple[int, int, int]:
        """The channels, height and width of square images, which have one channel or CIFAR-10's."""
        if self.pixels == math.prod(cifar.SHAPE):
            return cifar.SHAPE
        side = math.isqrt(self.pixels)
        return 1, side, side

    def standardised(self) -> "Dataset":
        """Return the images with mean 0 and deviation 1 in each channel of the training images."""
        channels = self.train.x.reshape(len(self.train.y), self.shape[0], -1)
        mean, square = (x.mean((0, 2), dtype=np.float64) for x in (channels, np.square(channels)))
        deviation = np.sqrt(square - mean**2)
        offset, scale = (
            np.repeat(found, channels.shape[2]).astype(np.float32) for found in (mean, deviation)
        )
        train, test = (
            split._replace(x=(split.x - offset) / scale) for split in (self.train, self.test)
        )
        return self._replace(train=train, test=test)

    def held_out(self, examples: int) -> tuple[Split, Split]:
        """Split the training examples into the last ``examples`` and those before."""
        if not 0 < examples < len(self.train.y):
            raise DataError(
                f"{examples} of {len(self.train.y)} training examples cannot be held out: "
                "hold out fewer"
            )
        x, y = self.train
        return Split(x[:-examples], y[:-examples]), Split(x[-examples:], y[-examples:])


def load(named: str | None, images: str, option: str = "--data") -> Dataset:
    """Read the images that an option of a command, or a variable, names.

    Images that are not known pass for each kind.
    """
    variable = VARIABLES[images]
    named = named or os.environ.get(variable)
    give = f"give {option} FILE or set {variable} to {images} {FORMS[images]}"
    if not named:
        raise DataError(f"no data are named: {give}")
    found = read(named)
    if found.kind in VARIABLES and found.kind != images:
        raise DataError(f"{named} is {found.name}: {give}")
    return found


def read(named: str) -> Dataset:
    """Read an .npz file, a folder with IDX or CIFAR-10's binary files, or the folder of one."""
    path = Path(named)
    if path.is_dir():
        return _checked(_folder(path))
    if not path.is_file():
        raise DataError(f"there is no file {named}: name an .npz file or a folder of IDX files")
    content = _read(path)
    if content.startswith(_ZIP):
        return _checked(_npz(path, content))
    if path.name in cifar.FILES or content.startswith(b"\0\0"):
        return _checked(_folder(path.parent))
    raise DataError(f"{named} is neither an .npz nor an IDX file: name one of these")


def digits() -> Dataset:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError(
            "the quick forms use scikit-learn's digits: pip install scikit-learn"
        ) from None
    found = load_digits()
    test = np.arange(len(found.target)) % 5 == 4
    images = np.asarray(found.data, np.uint8)
    x, y = np.asarray(images / 16.0, np.float32), np.asarray(found.target, np.int64)
    return Dataset(
        "digits (scikit-learn)",
        Split(x[~test], y[~test]),
        Split(x[test], y[test]),
        _sha256({"x": images, "y": y.astype(np.uint8)}),
    )


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    if not content.startswith(_GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path} cannot be unpacked by gzip: get the file again") from None


def _npz(path: Path, content: bytes) -> dict[str, np.ndarray]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            if cifar.is_jpeg(arrays):
                return cifar.from_jpeg(arrays)
            missing = [name for name in _ARRAYS if name not in arrays]
            if missing:
                raise DataError(
                    f"{path} has no array {missing[0]}: it must have {', '.join(_ARRAYS)}"
                )
            return {name: arrays[name] for name in _ARRAYS}
    except cifar.FormError as error:
        raise DataError(f"{path}: {error}") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if "pickle" in str(error).lower():
            raise DataError(
                f"{path} has an array of pickled objects, which are never read: save it as uint8"
            ) from None
        raise DataError(f"{path} is a broken .npz file: get the file again") from None


def _folder(folder: Path) -> dict[str, np.ndarray]:
    """Read the folder's IDX files, or the binary files of CIFAR-10 if it has the first of them."""
    if (folder / cifar.FILES[0]).is_file():
        try:
            return cifar.from_binary({file: _read(folder / file) for file in cifar.FILES})
        except cifar.FormError as error:
            raise DataError(f"{folder}: {error}") from None
    return {name: _idx(_idx_path(folder, name), dims) for name, (_, dims) in _IDX.items()}


def _idx_path(folder: Path, name: str) -> Path:
    stem, dims = _IDX[name]
    usual = f"{stem}-idx{dims}-ubyte"
    for spelled in (usual, f"{stem}.idx{dims}-ubyte"):
        for ending in ("", ".gz"):
            path = folder / f"{spelled}{ending}"
            if path.is_file():
                return path
    raise DataError(f"there is no {usual} or {usual}.gz in {folder}: put it there, or name an .npz")


def _idx(path: Path, dimensions: int) -> np.ndarray:
    """Read an IDX file: two zero bytes, the type, the number of dimensions, the sizes, the data."""
    content = _read(path)
    start = 4 + 4 * dimensions
    if len(content) < start or content[:2] != b"\0\0":
        raise DataError(f"{path} is not an IDX file: get the file again")
    if content[2] != _UNSIGNED_BYTES or content[3] != dimensions:
        raise DataError(
            f"{path} has type {content[2]:#04x} in {content[3]} dimensions: "
            f"it must have bytes (0x08) in {dimensions}"
        )
    shape = struct.unpack_from(f">{dimensions}I", content, 4)
    if len(content) - start != math.prod(shape):
        raise DataError(
            f"{path} has {len(content) - start} bytes of data: its header promises "
            f"{math.prod(shape)}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _checked(arrays: dict[str, np.ndarray]) -> Dataset:
    for part in ("train", "test"):
        x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if x.dtype != np.uint8:
            raise DataError(f"x_{part} has dtype {x.dtype}: it must be uint8, from 0 to 255")
        if y.dtype.kind not in "iu":
            raise DataError(f"y_{part} has dtype {y.dtype}: it must hold integers")
        forms = ("x", x, (2, 3), "(n, height, width) or (n, pixels)"), ("y", y, (1,), "(n,)")
        for name, array, dimensions, form in forms:
            if array.ndim not in dimensions or array.size == 0:
                shape = f"{name}_{part} has shape {array.shape}"
                raise DataError(f"{shape}: it must be {form}, and not empty")
        if not (y.min() >= 0 and y.max() < CLASSES):
            raise DataError(f"y_{part} has labels from {y.min()} to {y.max()}: they must be 0 to 9")
        if len(x) != len(y):
            raise DataError(f"x_{part} has {len(x)} images and y_{part} {len(y)} labels")
    sizes = [arrays[f"x_{part}"][0].size for part in ("train", "test")]
    if sizes[0] != sizes[1]:
        raise DataError(f"x_train has {sizes[0]} pixels an image and x_test {sizes[1]}")
    sha256 = _sha256(arrays)
    return Dataset(
        KNOWN.get(sha256, "images named by the user"),
        _split(arrays["x_train"], arrays["y_train"]),
        _split(arrays["x_test"], arrays["y_test"]),
        sha256,
    )


def _split(images: np.ndarray, labels: np.ndarray) -> Split:
    x = images.reshape(len(images), -1).astype(np.float32)
    x /= 255.0
    return Split(x, labels.astype(np.int64))


def _sha256(arrays: dict[str, np.ndarray]) -> str:
    """Hash the bytes of the arrays in order, with labels as uint8."""
    found = hashlib.sha256()
    for array in arrays.values():
        found.update(np.ascontiguousarray(array, np.uint8).tobytes())
    return found.hexdigest()


# Keys are hashes of x_train, y_train, x_test and y_test.
KNOWN = {
    "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16": "MNIST",
    "ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f": "Fashion-MNIST",
    "f916d08aa5d13a6374bbd2efc9218bed353c7d7d68c77a340eb1638981e8d677": (
        "CIFAR-10, compressed as JPEG"
    ),
}
