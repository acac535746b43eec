"""What the functions of weights in two and more dimensions share: constants, ufuncs, nodes."""
