"""The penalties of a `Weight`: the exact KL, approximations, and other priors."""
