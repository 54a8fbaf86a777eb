"""Names in the IR that are those of no operation: the scopes of buffers, and values that each core is given."""

# The scope of a circular buffer, and that of values in DST.
CB_SCOPE = "tt.cb"
DST_SCOPE = "tt.dst"

# A value of a core by its name, and the number of its work item.
CORE_VALUE = "tt.core_value"
CORE_ITEM = "tt.core_item"
