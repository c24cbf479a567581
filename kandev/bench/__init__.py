"""`manage.py bench`: the speed table as ratios of one run (docs/speed.md).

The command starts PostgreSQL and Redis and then `python -m kandev.bench`, a process whose Django knows only the
benchmark's own database. That process starts servers (`stage`), a client that is not the bottleneck (`client`) and the
bare pieces that the product is measured against (`bare`); the rows themselves are in `answers`, `queries`, `sizes`,
`waking`, `waiters`, `fanout` and `listing`.
"""
