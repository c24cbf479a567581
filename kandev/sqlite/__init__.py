"""The database backend for SQLite (`ENGINE`): Django's, with a queue in front of the write lock."""
