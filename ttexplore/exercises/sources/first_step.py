# %% yours
# A word that the plan has first after the step that decides how many pages each circular buffer has:
word = None

# %% solution
# The pages of a buffer come in blocks, and the plan counts the pages of one block.
word = "block_pages"

# %% hint
# `ex.find("pages")` lists the steps in which a word stands, in the code and in the plan.

# %% hint
# The facts of a plan have names of two words: the unit that a kernel hands over at once, and what is counted in it.
