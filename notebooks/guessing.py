"""Guesses before the answer: a notebook asks, and the run answers. Without a guess, the answer is folded."""

from html import escape

_OPEN = "Write your guess in place of `...`, and run the cell again."


class Folded:
    """What stands behind a guess that is not made yet: a figure, or an answer, to unfold."""

    def __init__(self, shown):
        self.shown = shown

    def __repr__(self):
        return _OPEN

    def _repr_html_(self):
        html = getattr(self.shown, "_repr_html_", None)
        inner = html() if html else f"<pre>{escape(str(self.shown))}</pre>"
        said = escape(_OPEN).replace("`...`", "<code>...</code>")
        return f"<p>{said}</p><details><summary>What the run says</summary>{inner}</details>"


class Guessed:
    """A guess beside what a run gives. `...` stands for no guess yet; `report` is what the run says besides."""

    def __init__(self, guess, result, unit="", report=""):
        self.guess, self.result, self.unit, self.report = guess, result, unit, report

    def __repr__(self):
        if self.guess is ...:
            return _OPEN
        said = "as you guessed" if self.guess == self.result else f"you guessed {self.guess}"
        return f"{self.answer}: {said}." if not self.report else f"{self.report}\n{self.answer}: {said}."

    def _repr_html_(self):
        return Folded(f"{self.answer}.\n{self.report}".rstrip())._repr_html_() if self.guess is ... else None

    @property
    def answer(self):
        return f"The run says {self.result} {self.unit}".rstrip()
