"""The exact functions as array arithmetic over a namespace, with their tables of coefficients."""
