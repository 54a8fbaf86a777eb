"""Guesses before the answer: a notebook asks, and the run answers."""


class Guessed:
    """A guess beside what a run gives. `...` stands for no guess yet."""

    def __init__(self, guess, found, unit=""):
        self.guess, self.found, self.unit = guess, found, unit

    def __repr__(self):
        answer = f"The run says {self.found} {self.unit}".rstrip()
        if self.guess is ...:
            return f"{answer}. Next time, write a guess first."
        return f"{answer}: as you guessed." if self.guess == self.found else f"{answer}; you guessed {self.guess}."
