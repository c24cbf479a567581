"""REST of this layer (contract 3): a view reads its input, calls an access function and one verb, shows the result."""
