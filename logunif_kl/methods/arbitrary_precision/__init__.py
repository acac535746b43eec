"""The methods in any number of digits, with mpmath."""
