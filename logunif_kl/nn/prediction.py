"""The result of `predict`, and its likelihoods."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from .._display import Table, as_html, as_text, described_briefly, in_short, statistics
from .._errors import shown
from .checks import one_of

LIKELIHOODS = ("categorical", "bernoulli", "normal")
LINKS = ("logit", "probit")
PROBIT = "bernoulli of a probit"

Array = TypeVar("Array")


class Prediction(NamedTuple, Generic[Array]):
    """The result of `predict`: the prediction for each example, and its uncertainty.

    Attributes
    ----------
    mean : array
        The mean of the probabilities over the samples, or of the outputs for ``"normal"``.
    variance : array
        The variance over the samples (divided by samples - 1) of the probabilities, or of the
        outputs for ``"normal"``. The variance does not include the noise of the data.
    entropy : array
        The entropy of the predictive distribution, in nats. For ``"normal"`` this distribution is
        taken as normal, and its variance includes the noise of the data.
    mutual_information : array
        `entropy` minus the mean entropy of the samples, in nats.
    samples : int
        The number of samples.
    """

    mean: Array
    variance: Array
    entropy: Array
    mutual_information: Array
    samples: int

    @property
    def expected_entropy(self) -> Array:
        """The mean entropy of the samples: the uncertainty that would remain for known weights."""
        total: Any = self.entropy
        return total - self.mutual_information  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return in_short(self)

    def __str__(self) -> str:
        return as_text(self._tables())

    def _repr_html_(self) -> str:
        return as_html(self._tables())

    def _tables(self) -> list[Table]:
        rows = [
            (name, described_briefly(array), *statistics(array))
            for name, array in zip(self._fields[:4], self[:4], strict=True)
        ]
        title = f"Prediction from {self.samples} samples"
        return [Table(title, ("", "array", "least", "mean", "greatest"), rows, ("array",))]


def check_likelihood(likelihood: str, link: str, log_sigma2: Any) -> str:
    """Check these options of `predict`, and return the likelihood, or `PROBIT`."""
    if log_sigma2 is not None and likelihood != "normal":
        raise ValueError(
            f"log_sigma2 was given with likelihood={shown(likelihood)}: pass likelihood='normal'"
        )
    one_of("likelihood", likelihood, LIKELIHOODS)
    if one_of("link", link, LINKS) == "logit":
        return likelihood
    if likelihood != "bernoulli":
        raise ValueError(
            f"link='probit' was given with likelihood={shown(likelihood)}: pass "
            "likelihood='bernoulli'"
        )
    return PROBIT
