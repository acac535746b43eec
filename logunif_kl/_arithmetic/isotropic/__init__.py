"""-KL of weights in k dimensions with an isotropic posterior, for an array namespace ``xp``.

`complex_weights` computes Ein(u) and its derivatives from the polynomials of `tables` (generated).
`complex_hessian` computes higher derivatives in mean and variance. `exponential` computes exp as a
sum of two floats. `vector` computes F_k(u), for k dimensions, by a quadrature.
"""
