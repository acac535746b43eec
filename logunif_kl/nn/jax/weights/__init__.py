"""The posterior over an array of weights, and the KL of a whole pytree."""
