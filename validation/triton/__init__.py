"""The Triton source of the arithmetic: `logunif_kl._kernel` traced over symbols and written out."""
