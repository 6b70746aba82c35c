"""Rows of a table in an SQLite database: a row source outside certgp."""

import sqlite3

import numpy as np

from certgp.data import Rows


class DatabaseRows(Rows):
    """The columns of a table without gaps in its row numbers; the last one is the target."""

    def __init__(self, path, table):
        self._database, self._table = sqlite3.connect(path), table
        columns = [column for column, *_ in self._database.execute(f"SELECT * FROM {table} LIMIT 0").description]
        self.names, self.n_columns = tuple(columns[:-1]), len(columns) - 1
        (self.n_rows,) = self._database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()

    def take(self, positions):
        numbers = np.arange(1, self.n_rows + 1)[positions].tolist()
        one = f"SELECT * FROM {self._table} WHERE rowid = ?"
        values = np.array([self._database.execute(one, (number,)).fetchone() for number in numbers], dtype=np.float64)
        return values[:, :-1], values[:, -1]
