"""The pages of this layer: board, task, activation, tokens, sign in. They only read; a state changes through REST."""
