"""Normal noise, local reparameterisation, and where noise is drawn."""
