"""Moments of outputs, without samples."""
