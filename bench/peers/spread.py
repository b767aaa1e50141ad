"""Medians with their spread, and ratios of what was measured in the same round."""

import statistics


class Spread:
    """Values of alternating rounds."""

    def __init__(self, values):
        self.values = list(values)

    @property
    def median(self):
        return statistics.median(self.values)

    def ratio_to(self, other):
        """Round by round: what disturbed a round disturbed both."""
        return Spread(mine / theirs for mine, theirs in zip(self.values, other.values, strict=True))

    def text(self, digits=1):
        low, high = min(self.values), max(self.values)
        return f"{self.median:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"

    def json(self):
        return {"median": self.median, "min": min(self.values), "max": max(self.values), "values": self.values}
