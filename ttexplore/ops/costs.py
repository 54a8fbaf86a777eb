"""What copies, set-up and hand-overs cost, in cycles, beside the `cycles` of each operation."""

# Per tile: a spilled value is packed, and copied back for each section that reads it again.
PACK_CYCLES = 36
COPY_CYCLES = 32
# Per element that a processor copies by itself: a load from L1 takes 8 cycles, a store 5 (tt-isa-documentation,
# BabyRISCV), and the addresses are computed. An estimate, as those of the other operations without an engine.
ELEMENT_CYCLES = 30
# Per section: semaphores, and the FPU drains before the packer starts.
SECTION_CYCLES = 100
# Per operation: its init, after another operation.
INIT_CYCLES = 24
