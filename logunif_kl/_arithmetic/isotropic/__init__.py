"""-KL of weights in two and more dimensions over a namespace ``xp``.

`complex_weights` is Ein(u) with its derivatives, and `tables` (generated) its polynomials.
`exponential` is exp in two words. `vector` is F_k(u) from the nodes of a quadrature.
"""
