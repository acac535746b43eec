"""Predictions, likelihoods, and noise in evaluation mode."""
