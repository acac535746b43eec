"""Layers for JAX; `logunif_kl.jax.nn` has their public names."""
