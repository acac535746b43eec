"""The arithmetic written in other languages, from a trace of it over symbols."""
