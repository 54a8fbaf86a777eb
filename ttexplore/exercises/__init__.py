"""The exercises of the notebooks: `checks` decides whether an answer is right, and `sources` has one file for each
exercise with what stands in the learner's cell, the hints and the solution."""
