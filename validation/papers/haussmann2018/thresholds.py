"""What a threshold on log alpha prunes, and where the histogram places it."""

import itertools

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d

from logunif_kl.torch import nn
from validation.output import Record
from validation.training.data import Split
from validation.training.loop import evaluate
from validation.training.networks import variational

LOWEST, HIGHEST, BINS = -12.0, 12.0, 96
THRESHOLDS = [-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]


def log_alphas(model: torch.nn.Module) -> torch.Tensor:
    found = [layer.log_alpha_of_weights().detach().flatten() for layer in variational(model)]
    return torch.cat(found).double()


def histogram(model: torch.nn.Module) -> list[int]:
    """Count the weights in bins of log alpha; the outer bins include all beyond."""
    values = log_alphas(model).clamp(LOWEST, HIGHEST).numpy()
    counts, _ = np.histogram(values, bins=BINS, range=(LOWEST, HIGHEST))
    return [int(n) for n in counts]


def valley(counts: list[int], smoothing: float = 2.0) -> float | None:
    """Return the log alpha of the lowest bin between the two highest modes.

    The counts are smoothed by a normal kernel of ``smoothing`` bins, and compared by their
    logarithms, so that a mode of few weights counts. The outer bins hold all weights beyond the
    range and do not count as modes. The result is None if there are fewer than two modes.
    """
    within = np.asarray(counts[1:-1], float)
    heights = np.log1p(gaussian_filter1d(within, smoothing, mode="nearest"))
    padded = np.concatenate(([-1.0], heights, [-1.0]))
    peaks = [i for i in range(len(heights)) if padded[i] < padded[i + 1] >= padded[i + 2]]
    valleys = []
    for first, second in itertools.combinations(peaks, 2):
        lowest = first + int(np.argmin(heights[first : second + 1]))
        valleys.append((min(heights[first], heights[second]) - heights[lowest], lowest))
    # Choose the valley that is the deepest below its lower mode.
    depth, lowest = max(valleys, key=lambda valley: valley[0], default=(0.0, 0))
    return None if depth < 0.1 else LOWEST + (lowest + 1.5) * (HIGHEST - LOWEST) / BINS


def pruned(model: torch.nn.Module, threshold: float, split: Split) -> Record:
    log_alpha = log_alphas(model)
    share = float((log_alpha > threshold).double().mean())
    found = evaluate(nn.to_deterministic(model, threshold=threshold), split)
    return {
        "threshold": threshold,
        "pruned_percent": 100.0 * share,
        "error_percent": found["error_percent"],
    }
