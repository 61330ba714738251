"""How long a run may take, so that a slow machine has its report in bounded time, too."""

import time

# Seconds. --quick is promised in under five minutes: what would end later is left out and says so.
LIMIT = {"quick": 290, "full": 2400, "smoke": 600}
# Of them for what comes after the rows: real connections, benches without I/O, profiles.
AFTER_ROWS = {"quick": 100, "full": 900, "smoke": 0}
# What takes how long in a bad hour (a good one takes two thirds): the devices of a pair in turn, or
# a row alone; what is measured beside its throughput; a profile without I/O.
PAIR, ROW, PROFILE = 27, 7, 12
MEASURES = {"latency": 30, "profile": 18, "flood": 20, "pushes": 21}
NO_TIME = "no time left"


class Budget:
    """Of one run, from now on."""

    def __init__(self, kind, clock=time.monotonic):
        """clock: what tells the seconds."""
        self._clock, self._kind, self._began = clock, kind, clock()

    def allows(self, seconds):
        """So much more is done in time."""
        return self._clock() - self._began + seconds <= LIMIT[self._kind]

    def allows_rows(self, group):
        """So are these rows, a pair or a single one, and what comes after all rows."""
        return self.allows(AFTER_ROWS[self._kind] + seconds_of(group))


def seconds_of(group):
    measures = {measure for row in group for measure in row["measures"]}
    return (PAIR if group[0]["pair"] else ROW) + sum(MEASURES.get(name, 0) for name in measures)
