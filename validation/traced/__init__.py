"""The arithmetic in other languages: traced over symbols and written out."""
