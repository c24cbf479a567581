"""How the database means to carry out statements that were captured."""

from collections.abc import Iterable
from typing import Any

from django.db import connection


def plans_of(captured: Iterable[dict[str, Any]], *tables: str) -> str:
    """Statement and plan of every SELECT among them that reads one of the tables; there must be one."""
    statements = [query["sql"] for query in captured]
    reads = [sql for sql in statements if sql.startswith("SELECT") and any(f'"{table}"' in sql for table in tables)]
    assert reads
    how = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        return "\n".join(f"{sql}\n{cursor.execute(f'{how} {sql}').fetchall()}" for sql in reads)
