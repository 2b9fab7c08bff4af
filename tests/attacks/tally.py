"""What every attack here keeps: a line for each sort of try, how many were made and how many were survived."""

import collections


class Tally:
    """Counts tries by sort. A try that is not survived is kept with what was seen, and ends the test in `check`."""

    def __init__(self, title):
        self.title = title
        self.tries = collections.Counter()
        self.survived = collections.Counter()
        self.faults = []

    def note(self, sort, survived, seen=""):
        self.tries[sort] += 1
        self.survived[sort] += bool(survived)
        if not survived:
            self.faults.append(f"{sort}: {seen}")

    def table(self):
        width = max(len(sort) for sort in (*self.tries, self.title))
        rows = [f"{self.title:{width}}  tries  survived"]
        rows += [f"{sort:{width}}  {tries:5}  {self.survived[sort]:8}" for sort, tries in self.tries.items()]
        rows.append(f"{'all':{width}}  {self.tries.total():5}  {self.survived.total():8}")
        return "\n".join(rows)

    def check(self, test):
        """Prints the table; fails `test` unless something was tried and everything was survived."""
        print(self.table(), flush=True)
        test.assertGreater(self.tries.total(), 0)
        test.assertEqual(self.faults, [])
