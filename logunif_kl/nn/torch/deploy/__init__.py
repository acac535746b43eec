"""Sparsity, pruning, and small networks for inference."""
