"""The readers of MNIST: every form, and one sentence for whatever is wrong with a file."""

import gzip
import io
import struct

import numpy as np
import pytest

from validation.training import cifar, data

rng = np.random.default_rng(0)
ARRAYS = {
    "x_train": rng.integers(0, 256, (12, 4, 5), np.uint8),
    "y_train": rng.integers(0, 10, 12).astype(np.uint8),
    "x_test": rng.integers(0, 256, (6, 4, 5), np.uint8),
    "y_test": rng.integers(0, 10, 6).astype(np.uint8),
}
NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


def idx(array, kind=8):
    header = bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.tobytes()


def npz(path, **changes):
    np.savez(path, **{**ARRAYS, **changes})
    return str(path)


def folder(path, ending="", pack=bytes, spelled=str):
    path.mkdir(exist_ok=True)
    for name, file in NAMES.items():
        (path / f"{spelled(file)}{ending}").write_bytes(pack(idx(ARRAYS[name])))
    return path


def refused(named, *words):
    with pytest.raises(data.DataError) as caught:
        data.load(named, "MNIST")
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text
    return text


def same(found):
    for part in ("train", "test"):
        split = getattr(found, part)
        assert (split.x.dtype, split.y.dtype) == (np.float32, np.int64)
        expected = ARRAYS[f"x_{part}"].reshape(len(split.y), -1) / np.float32(255)
        np.testing.assert_array_equal(split.x, expected)
        np.testing.assert_array_equal(split.y, ARRAYS[f"y_{part}"])


class TestEveryForm:
    @pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
    @pytest.mark.parametrize("dot", [False, True], ids=["-idx", ".idx"])
    def test_idx(self, tmp_path, pack, dot):
        spelled = (lambda name: name.replace("-idx", ".idx")) if dot else str
        same(data.read(str(folder(tmp_path, "" if pack is bytes else ".gz", pack, spelled))))

    def test_one_hash_for_all_forms(self, tmp_path):
        a = data.read(npz(tmp_path / "a.npz"))
        same(a)
        about = a.about()
        assert (about["training_examples"], about["test_examples"], about["pixels"]) == (12, 6, 20)
        assert str(tmp_path) not in str(about)
        b = data.read(str(folder(tmp_path / "b") / NAMES["y_test"]))  # by one of its files
        assert a.sha256 == b.sha256
        other = data.read(npz(tmp_path / "c.npz", y_test=(ARRAYS["y_test"] + 1) % 10))
        assert other.sha256 != a.sha256

    def test_by_the_environment(self, tmp_path, monkeypatch):
        """Compressed, packed by gzip, of rows of pixels, and with wide labels."""
        rows = {f"x_{p}": ARRAYS[f"x_{p}"].reshape(-1, 20) for p in ("train", "test")}
        labels = {f"y_{p}": ARRAYS[f"y_{p}"].astype(np.int64) for p in ("train", "test")}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **rows, **labels)
        (tmp_path / "a.npz.gz").write_bytes(gzip.compress(buffer.getvalue()))
        monkeypatch.setenv("LOGUNIF_KL_MNIST", str(tmp_path / "a.npz.gz"))
        same(data.load(None, "MNIST"))
        monkeypatch.delenv("LOGUNIF_KL_MNIST")
        said = "no data are named: give --data FILE or set LOGUNIF_KL_MNIST to MNIST as .npz or IDX"
        assert refused(None) == f"{said} files"

    def test_held_out(self, tmp_path):
        dataset = data.read(npz(tmp_path / "a.npz"))
        first, last = dataset.held_out(4)
        np.testing.assert_array_equal(np.concatenate([first.y, last.y]), ARRAYS["y_train"])
        assert len(last.x) == 4
        for examples in (0, 12):
            with pytest.raises(data.DataError, match="of 12 training examples cannot be held out"):
                dataset.held_out(examples)


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda _: None, ["there is no file", "name an .npz file"]),
            (lambda _: b"hello", ["is neither an .npz nor an IDX file"]),
            (lambda whole: whole[: len(whole) // 2], ["is a broken .npz file: get the file again"]),
        ],
    )
    def test_no_such_form(self, tmp_path, change, words):
        path = tmp_path / "a.npz"
        npz(path)
        content = change(path.read_bytes())
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        refused(str(path), *words)

    def test_a_pickle_is_never_read(self, tmp_path):
        class Fatal:
            def __reduce__(self):
                return pytest.fail, ("unpickled",)

        named = npz(tmp_path / "a.npz", y_train=np.array([Fatal()], dtype=object))
        refused(named, "an array of pickled objects, which are never read: save it as uint8")

    @pytest.mark.parametrize(
        ("part", "change", "words"),
        [
            ("x_train", lambda whole: gzip.compress(whole)[:-20], "cannot be unpacked by gzip"),
            ("x_test", lambda whole: whole[:10], "t10k-images-idx3-ubyte is not an IDX file"),
            ("x_test", lambda whole: whole[:-1], "has 119 bytes of data: its header promises"),
            ("y_test", lambda whole: whole + b"\0", "has 7 bytes of data: its header promises 6"),
            ("x_train", lambda _: idx(ARRAYS["y_train"]), "has type 0x08 in 1 dimensions: it must"),
            ("y_train", lambda _: idx(ARRAYS["y_train"], kind=0x0D), "has type 0x0d in 1 dimen"),
        ],
    )
    def test_an_idx_file_that_is_wrong(self, tmp_path, part, change, words):
        file = folder(tmp_path) / NAMES[part]
        file.write_bytes(change(file.read_bytes()))
        refused(str(tmp_path), words)
        file.unlink()
        refused(str(tmp_path), f"there is no {NAMES[part]} or {NAMES[part]}.gz")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"x_train": ARRAYS["x_train"] / 255.0}, "x_train has dtype float64: it must be uint8"),
            ({"y_test": ARRAYS["y_test"] * 1.0}, "y_test has dtype float64: it must hold integers"),
            ({"y_train": ARRAYS["y_train"][:, None]}, "y_train has shape (12, 1): it must be (n,)"),
            ({"x_test": ARRAYS["x_test"][:0]}, "x_test has shape (0, 4, 5)"),
            ({"y_test": ARRAYS["y_test"].astype(np.int8) - 9}, "they must be 0 to 9"),
            ({"y_train": ARRAYS["y_train"][:-1]}, "x_train has 12 images and y_train 11 labels"),
            ({"x_test": ARRAYS["x_test"][:, :3]}, "x_train has 20 pixels an image and x_test 15"),
        ],
    )
    def test_arrays_that_are_wrong(self, tmp_path, changes, words):
        refused(npz(tmp_path / "a.npz", **changes), words)


def colours(seed, count):
    """Draw smooth images of shape (count, 3, 32, 32), which JPEG changes little, and labels."""
    corners = np.random.default_rng(seed).integers(0, 256, (count, 3, 2, 2))
    along = np.linspace(0.0, 1.0, 32)
    rows = corners[:, :, :1] * (1.0 - along[:, None]) + corners[:, :, 1:] * along[:, None]
    images = rows[..., :1] * (1.0 - along) + rows[..., 1:] * along
    return images.astype(np.uint8), np.sort(np.arange(count) % 3).astype(np.uint8)


class TestCifar10:
    TRAIN, TEST = colours(1, 50), colours(2, 10)

    def binary(self, folder):
        folder.mkdir(exist_ok=True)
        parts = [*(tuple(each[i : i + 10] for each in self.TRAIN) for i in range(0, 50, 10))]
        for file, (images, labels) in zip(cifar.FILES, [*parts, self.TEST], strict=True):
            records = np.concatenate([labels[:, None], images.reshape(10, -1)], axis=1)
            (folder / file).write_bytes(records.tobytes())
        return folder

    def jpeg(self, path, **changes):
        image = pytest.importorskip("PIL.Image")
        arrays = {}
        for part, (images, labels) in {"train": self.TRAIN, "test": self.TEST}.items():
            files = []
            for each in images:
                buffer = io.BytesIO()
                image.fromarray(each.transpose(1, 2, 0)).save(buffer, "JPEG", quality=95)
                files.append(np.frombuffer(buffer.getvalue(), np.uint8))
            arrays[f"{part}_jpeg"] = np.concatenate(files)
            arrays[f"{part}_ends"] = np.cumsum([len(file) for file in files])
            arrays[f"{part}_labels"] = labels
        arrays = {name: changes.get(name, array) for name, array in arrays.items()}
        np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
        return str(path)

    @pytest.mark.parametrize("inside", ["", cifar.FILES[-1]])
    def test_its_binary_files(self, tmp_path, inside):
        found = data.load(str(self.binary(tmp_path) / inside), "CIFAR-10")
        assert (found.pixels, found.shape) == (3072, (3, 32, 32))
        for split, (images, labels) in ((found.train, self.TRAIN), (found.test, self.TEST)):
            expected = images.reshape(len(labels), -1) / np.float32(255)
            np.testing.assert_array_equal(split.x, expected)
            np.testing.assert_array_equal(split.y, labels)

    def test_jpeg_files_are_put_one_of_each_class_in_turn(self, tmp_path):
        found = data.load(self.jpeg(tmp_path / "a.npz"), "CIFAR-10")
        images, labels = self.TRAIN
        np.testing.assert_array_equal(found.train.y[:48], np.tile([0, 1, 2], 16))
        first_of_each = images[[list(labels).index(label) for label in range(3)]]
        off = found.train.x[:3] * 255 - first_of_each.reshape(3, -1)
        assert np.abs(off).mean() < 3.0

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"test_ends": None}, "it has no array test_ends: it must have test_jpeg, test_ends"),
            ({"train_labels": TRAIN[1][:-1]}, "train_ends has 50 entries, train_labels 49"),
            ({"test_jpeg": np.zeros(9000, np.uint8)}, "an image is no JPEG file"),
        ],
    )
    def test_jpeg_files_that_are_wrong(self, tmp_path, changes, words):
        refused(self.jpeg(tmp_path / "a.npz", **changes), words)

    def test_binary_files_that_are_wrong(self, tmp_path):
        file = self.binary(tmp_path) / cifar.FILES[2]
        file.write_bytes(file.read_bytes()[:-1])
        refused(str(tmp_path), "data_batch_3.bin has 30729 bytes, which is no multiple of 3073")
        file.unlink()
        refused(str(tmp_path), "cannot read", "data_batch_3.bin")

    @pytest.mark.parametrize("kind", ["MNIST", "Fashion-MNIST"])
    def test_is_taken_for_nothing_else(self, tmp_path, monkeypatch, kind):
        named = str(self.binary(tmp_path))
        known = data.read(named).sha256
        monkeypatch.setitem(data.KNOWN, known, "CIFAR-10, compressed as JPEG")
        assert data.load(named, "CIFAR-10").kind == "CIFAR-10"
        with pytest.raises(data.DataError, match="is CIFAR-10, compressed as JPEG: give --data"):
            data.load(named, kind)

    def test_standardised(self, tmp_path):
        found = data.load(str(self.binary(tmp_path)), "CIFAR-10").standardised()
        channels = found.train.x.reshape(50, 3, -1).astype(np.float64)
        np.testing.assert_allclose(channels.mean((0, 2)), 0.0, atol=1e-6)
        np.testing.assert_allclose(channels.std((0, 2)), 1.0, rtol=1e-5)
        assert (found.train.x.dtype, found.test.x.dtype) == (np.float32, np.float32)
        assert abs(found.test.x.mean()) > 1e-3  # by the training images


def test_digits():
    pytest.importorskip("sklearn")
    digits = data.digits()
    assert (digits.train.x.shape, digits.test.x.shape) == ((1438, 64), (359, 64))
    assert (digits.train.x.min(), digits.train.x.max()) == (0.0, 1.0)
    assert set(digits.train.y) == set(digits.test.y) == set(range(10))
