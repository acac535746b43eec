"""What Molchanov et al. 2017 print in Table 1, on MNIST, for sparse variational dropout.

``pruned`` is "sparsity per layer", in per cent; ``compression`` is |W|/|W != 0|.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """Sparse VD of one network."""

    title: str
    error_percent: float
    pruned: tuple[float, ...]
    compression: float


TABLE_1 = {
    "lenet_300_100": Row("LeNet-300-100", 1.92, (98.9, 97.2, 62.0), 68.0),
    "lenet_5_caffe": Row("LeNet-5-Caffe", 0.75, (67.0, 98.0, 99.8, 95.0), 280.0),
}
