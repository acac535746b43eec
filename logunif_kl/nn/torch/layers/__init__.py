"""Layers of PyTorch: modules."""
