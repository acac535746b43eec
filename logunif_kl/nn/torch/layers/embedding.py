"""A variational embedding."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any, Unpack

import torch
from torch.nn import functional as F

from ...._errors import type_name
from ....torch._sharded import distributed_as, settled
from ...checks import check_flag
from ...terms import Units
from ..arguments import check_dtype
from ..noise.local import clamped, draw_weights
from ..options import VariationalOptions, check_table, list_options
from .base import VariationalLayer

Tensor = torch.Tensor


class VariationalEmbedding(VariationalLayer, torch.nn.Embedding):
    """`torch.nn.Embedding` with a Gaussian posterior over its weights.

    A look-up of a row returns mu + sigma zeta with zeta ~ N(0, 1). With the ``"local"`` estimator
    (Kingma et al. 2015, section 2.3) each look-up draws its own noise. With ``"per_example"`` or
    ``"per_batch"``, all look-ups of a row in an example or in the minibatch return the same sample.
    See `VariationalLinear` for everything else.

    Parameters
    ----------
    num_embeddings, embedding_dim, norm_type, scale_grad_by_freq, device, dtype
        As for `torch.nn.Embedding`.
    padding_idx : int, optional
        As for `torch.nn.Embedding`. The row at this index is constant: it has no noise and no KL.
    max_norm, sparse
        Must be left at their defaults.
    posterior, estimator, penalty, generator
        As for `VariationalLinear`. With ``Multiplicative("input")`` each row has an alpha, so that
        `log_alpha` has the shape ``(num_embeddings, 1)``. With ``Multiplicative("output")`` each
        column has one, with shape ``(1, embedding_dim)``. With `Correlated`, each row has a scale.

    Raises
    ------
    ValueError
        As for `VariationalLinear`. Also if `max_norm` is given, because it would change the means
        but not the variances, if `sparse` is True, because the gradient of the KL is dense, or for
        the posteriors `Grouped` and `Scaled`.
    TypeError, RuntimeError
        As for `VariationalLinear`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> table = nn.VariationalEmbedding(10, 4, padding_idx=0)
    >>> table(torch.tensor([[1, 2, 0]])).shape
    torch.Size([1, 3, 4])
    >>> table(torch.tensor(0)).detach()
    tensor([0., 0., 0., 0.])
    """

    _lk_plain = torch.nn.Embedding
    _units = Units(input=0, output=1)

    @list_options
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[VariationalOptions],
    ) -> None:
        check_dtype(dtype)
        if max_norm is not None:
            raise ValueError(
                f"max_norm={max_norm} would change the means but not the variances: leave it out"
            )
        if sparse:
            raise ValueError("sparse=True was given, but the KL has a dense gradient: leave it out")
        super().__init__(
            *(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type),
            *(scale_grad_by_freq, sparse, _weight, _freeze, device, dtype),
        )
        self._become_variational(**options)
        check_table(self.posterior, "an embedding", "pass posterior=nn.Multiplicative()")

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        **options: Any,
    ) -> VariationalEmbedding:
        """Return a `VariationalEmbedding` whose means are the given embeddings.

        Parameters
        ----------
        embeddings : Tensor
            Of shape (num_embeddings, embedding_dim).
        freeze : bool
            If True, the means are not trained. The variances are trainable in any case.
        padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
            As for `VariationalEmbedding`.
        **options
            The options of `VariationalLinear`, such as `posterior`.

        Returns
        -------
        VariationalEmbedding

        Raises
        ------
        TypeError, ValueError
            As for `VariationalEmbedding`, and if `embeddings` does not have two dimensions.

        Examples
        --------
        >>> import torch
        >>> from logunif_kl.torch import nn
        >>> table = nn.VariationalEmbedding.from_pretrained(torch.ones(3, 2))
        >>> table.weight.requires_grad, table.log_sigma2.requires_grad
        (False, True)
        """
        if not isinstance(embeddings, Tensor):
            raise TypeError(
                f"embeddings must be a torch.Tensor, but {type_name(embeddings)} was given: "
                "convert it with torch.as_tensor"
            )
        if embeddings.ndim != 2:
            raise ValueError(
                f"embeddings must have 2 dimensions, but the shape {tuple(embeddings.shape)} was "
                "given: reshape the tensor"
            )
        check_dtype(embeddings.dtype)
        check_flag("freeze", freeze)
        return cls(
            *(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse),
            **{"_weight": embeddings, "_freeze": freeze, **options},
        )

    @property
    def _lk_padding(self) -> int | None:  # type: ignore[override]
        given = self.padding_idx  # It may have been assigned, below 0 too.
        return given if given is None or given >= 0 else given + self.num_embeddings

    def forward(self, input: Tensor) -> Tensor:
        """Draw the rows in training mode and within `sampling`; return the means otherwise."""
        means = F.embedding(
            *(input, self._masked(), self._lk_padding, self.max_norm, self.norm_type),
            *(self.scale_grad_by_freq, self.sparse),
        )
        if not self._lk_draws:
            return means
        means = settled(means)
        return means + self._deviations_at(input, means) * self._noise_at(input, means)

    def _deviations_at(self, input: Tensor, means: Tensor) -> Tensor:
        """Return the standard deviations of the looked-up rows, which are 0 at `padding_idx`."""
        log_variance = clamped(self._typed())
        if len(log_variance) == len(self._lk_stored):
            log_variance = settled(
                F.embedding(
                    *(input, log_variance, self._lk_padding),
                    scale_grad_by_freq=self.scale_grad_by_freq,
                )
            )
        deviations = (0.5 * log_variance).exp()
        if self.posterior.relative:
            deviations = means * deviations
        if self._lk_padding is not None:
            deviations = deviations.masked_fill((input == self._lk_padding).unsqueeze(-1), 0.0)
        return deviations

    def _noise_shape(self) -> tuple[int, int]:
        rows, columns = self._lk_stored.shape
        return rows, columns if self.posterior.independent else 1

    def _noise_at(self, input: Tensor, means: Tensor) -> Tensor:
        rows, columns = self._noise_shape()
        if self._lk_estimator == "local":
            return self._lk_normals((*input.shape, columns), means)
        if self._lk_estimator == "per_batch" or not input.ndim:
            return self._lk_normals((rows, columns), means)[input]
        noise = self._lk_normals((input.shape[0], rows, columns), means)
        example = distributed_as(torch.arange(input.shape[0], device=input.device), noise)
        return noise[example.view(-1, *[1] * (input.ndim - 1)), input]

    def _lk_sampled(self, name: str = "weight") -> Tensor:
        # Do not call the layer, because its hooks may gather its parameters or change its output.
        mean = self._masked()
        noise = self._lk_normals(self._noise_shape(), mean)
        drawn = draw_weights(mean, self._typed(), self._form(), noise)
        if (at := self._lk_padding) is None:
            return drawn
        return torch.cat([drawn[:at], mean[at : at + 1], drawn[at + 1 :]])

    def _lk_log_alpha(self, name: str = "weight") -> Tensor:
        found = super()._lk_log_alpha()
        if self._lk_padding is None:
            return found
        at = self._lk_padding
        constant = torch.full_like(found[at : at + 1], -math.inf)
        return torch.cat([found[:at], constant, found[at + 1 :]])
