"""Trees of smaller arrays, without the units that a function does not need."""
