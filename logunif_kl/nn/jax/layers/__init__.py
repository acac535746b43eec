"""Layers of JAX: functions of inputs, weights and a key."""
