# %% yours
# Blocks such as {"block_M": 64, "block_N": 64}, and options such as {"policy": "match_shard"}:
blocks = None
options = None

# %% solution
# 64 shards of 64 rows; a block has whole rows, so that each core has all of its blocks.
blocks = {"block_M": 32, "block_N": 128}
options = {
    "layouts": {name: {"shard": "height"} for name in "ABC"},
    "policy": "match_shard",
    "match": "A",
    "mode": "local_shard",
}

# %% hint
# Three options are needed: where the tensors lie, which core takes which block, and that shards are buffers.

# %% hint
# A shard "by height" has whole rows. Which blocks lie in one shard as a whole?

# %% hint
# The names: `layouts`, `policy="match_shard"` with `match="A"`, and `mode="local_shard"`, as above.
