"""The arithmetic in other languages, written from a trace over symbols."""
