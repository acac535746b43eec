"""The Gaussian weights of layers and of any module, and the KL of a whole model."""
