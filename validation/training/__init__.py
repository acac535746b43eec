"""Data, networks, training loop, checkpoints and records that the experiments share."""
