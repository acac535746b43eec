"""The methods in any number of digits, by mpmath."""
