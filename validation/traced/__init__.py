"""The arithmetic in other languages: `logunif_kl._kernel` traced over symbols and written out."""
