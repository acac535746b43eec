"""The one source of the documentation of the six public functions, and its generator.

Each function has one text, ``NAME.txt``, for NumPy, PyTorch, JAX and TensorFlow alike. ``$slot``
stands in it for what differs. ``shared.toml`` fills slots for all four, and ``numpy.toml``,
``torch.toml``, ``jax.toml`` and ``tensorflow.toml`` for one: under ``[every]`` for every function,
under ``[NAME]`` for one function. The narrower entry is taken before the wider.

``python -m validation.tools.docstrings`` writes the docstrings into the four files.
"""
