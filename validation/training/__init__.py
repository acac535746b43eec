"""What the experiments share: data, networks, the loop, checkpoints and records."""
