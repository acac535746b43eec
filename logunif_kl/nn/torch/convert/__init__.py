"""Conversions of networks to variational ones, and back."""
