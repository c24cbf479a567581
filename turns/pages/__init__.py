"""Fragments of the task page that this layer fills: transcript, composer, queue, and the agents on offer."""
