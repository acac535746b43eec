"""Layers for PyTorch; `logunif_kl.torch.nn` has their public names."""
