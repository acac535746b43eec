"""Which units of a traced network are dead, and networks without them."""
