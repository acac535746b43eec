"""Predictions and likelihoods."""
