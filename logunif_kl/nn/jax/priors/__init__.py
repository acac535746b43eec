"""The penalties of weights: the exact KL, approximations, and other priors."""
