"""VerifyError: a step of the lowering broke one of its laws. An internal fault, found before anything wrong runs."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

VERIFIER = (
    diagnostic(
        "V001", "push and pop do not balance",
        "Over a work item a circular buffer must give as many tiles as it gets, on every path; else the next item "
        "starts at the wrong tile, or a kernel waits for ever.",
        "Push in the producer what the consumer pops: compare the loops and conditions around both.",
    ),
    diagnostic(
        "V002", "tiles are held from turn to turn",
        "A loop starts a turn with tiles reserved or waited for that the turn before left: a push or a pop is missing.",
        "Push what is reserved and pop what is waited for in the same turn.",
    ),
    diagnostic(
        "V003", "more is pushed than reserved",
        "A push hands over tiles that were reserved; what was not reserved may still be in use by the consumer.",
        "Reserve the tiles before they are written, and push each once.",
    ),
    diagnostic(
        "V004", "more is popped than waited for",
        "A pop gives back tiles that a wait has got.",
        "Wait for the tiles before they are read, and pop each once.",
    ),
    diagnostic(
        "V005", "a tile outside of what is held",
        "A kernel reads inside of what it has waited for, and writes inside of what it has reserved.",
        "Wait for, or reserve, enough tiles, or correct the tile index.",
    ),
    diagnostic(
        "V006", "a tile is pushed that nobody wrote",
        "Every tile of a block must be written before the block is handed over.",
        "Read, pack or store to each tile: compare the tile loop with the block.",
    ),
    diagnostic(
        "V007", "a block is larger than its buffer",
        "The kernel would wait for ever.",
        "Give the circular buffer more pages, or move smaller blocks.",
    ),
    diagnostic(
        "V008", "a block straddles the end of its buffer",
        "The chip does not wrap inside a block: it would read and write beyond the buffer, without a word.",
        "Make the number of pages a multiple of every block that is pushed and popped.",
    ),
    diagnostic(
        "V009", "deadlock",
        "The kernels of a core wait for each other, or one waits for itself.",
        "Give the buffer that is full more pages (stages), or let its consumer pop earlier; where all are empty a push "
        "is missing.",
    ),
    diagnostic(
        "V010", "a circular buffer with other users than planned",
        "Each circular buffer has one producer and one consumer, those of the plan.",
        "Move the operation to that kernel, or use another buffer; leave unused buffers out of the plan.",
    ),
    diagnostic(
        "V011", "a read has not arrived",
        "A NoC read is under way until the barrier: the consumer would read what was there before.",
        "Put noc_read_barrier between the reads and the push.",
    ),
    diagnostic(
        "V012", "a write has not gone or not arrived",
        "A tile must stay until a write has sent it, and a kernel must not end before its writes have arrived.",
        "Put noc_writes_flushed before the pop, and noc_write_barrier at the end.",
    ),
    diagnostic(
        "V013", "a page outside of its tensor",
        "A page index left the tensor: it would read or overwrite something else.",
        "Correct the page index, or leave out what lies outside.",
    ),
    diagnostic(
        "V014", "a page that two cores touch",
        "Cores run in any order: which write comes last, and whether a read sees it, is not defined.",
        "Let one core do all work items that touch the page, or write to another tensor.",
    ),
    diagnostic(
        "V015", "the pages that are written are not those of the kernel",
        "Every page that the kernel stores to must be written, and no other.",
        "Let the cores do every work item, and each write its whole block.",
    ),
    diagnostic(
        "V016", "page indices that cannot be followed",
        "Without a bound nothing can be proved about the pages that are touched.",
        "Index with loop variables, and with values that the cores know.",
    ),
    diagnostic(
        "V020", "a section of DST out of order",
        "Math and packer share DST: sections are acquired, committed, waited for and released, on every path.",
        "The order is tile_regs_acquire, tile_regs_commit, tile_regs_wait, tile_regs_release.",
    ),
    diagnostic(
        "V021", "an operation in the wrong part of a section",
        "Operations compute between acquire and commit, and pack between wait and release.",
        "Put it into its part of the section.",
    ),
    diagnostic(
        "V022", "a slot outside of DST",
        "DST holds 8 tiles of 16 bits or 4 of 32 bits at a time; the chip does not tell when a slot is beyond.",
        "Use smaller sub-blocks.",
    ),
    diagnostic(
        "V023", "a slot with the wrong contents",
        "A slot is read only after the section has written it; an operation that adds starts on an untouched one.",
        "Correct the slot, or copy or compute the tile first.",
    ),
    diagnostic(
        "V030", "the engine is not started once and first",
        "The start-up sets unpacker, math and packer; nothing may come before it, and it may not come again.",
        "Put compute_startup first in the kernel, once.",
    ),
    diagnostic(
        "V031", "an operation without its init",
        "Inits overwrite each other: an operation under another one's init hangs or is silently wrong.",
        "Put the operation's own init before it, with the same arguments.",
    ),
    diagnostic(
        "V032", "the wrong data format",
        "Unpacker and packer are set to one format at a time; another format gives garbage.",
        "Reconfigure before the operation, and put its init after that.",
    ),
    diagnostic(
        "V033", "a setting is not undone",
        "Some operations change settings that others rely on.",
        "Put the operation's uninit after its last use.",
    ),
    diagnostic(
        "V035", "rows taken for tiles, or tiles for rows",
        "A circular buffer holds tiles, or rows of elements that the compute kernel makes tiles of.",
        "Convert between the two, with the width of rows that the plan says.",
    ),
    diagnostic(
        "V034", "an operation that is wrong in this mode",
        "The chip computes something else than the operation says, for this format or this width of DST.",
        "Use another operation, or the other width of DST.",
    ),
    diagnostic(
        "V040", "work that is not done once",
        "Every work item is done by one core.",
        "Let the starts and counts of the cores cover all items, each once.",
    ),
    diagnostic(
        "V041", "a core that the chip does not have",
        "The partition names a core outside of the compute grid.",
        "Use cores of the grid.",
    ),
    diagnostic(
        "V042", "arguments that do not fit the kernel",
        "Each kernel gets the arguments that it reads, in its order, and every core has a value for each.",
        "Let signature, partition and kernel agree.",
    ),
    diagnostic(
        "V043", "operands that do not fit the operation",
        "An operation of the table takes operands of certain kinds, in a certain order.",
        "Give the operands in the order of the operation table.",
    ),
    diagnostic(
        "V044", "a plan that does not fit the chip or itself",
        "Sizes, numbers and strides in the plan follow from the formats, the tensors and the target.",
        "Take them from there.",
    ),
    diagnostic(
        "V045", "integers where numbers are expected",
        "A tile of DST holds float32 numbers or 32-bit integers, and nothing converts them by itself.",
        "Put a typecast before the operation.",
    ),
    diagnostic(
        "V050", "a statement without a kernel line",
        "Every statement knows the lines of the kernel that it came from.",
        "Stamp new statements with the span of what they replace.",
    ),
    diagnostic(
        "V051", "a step lost or made operations",
        "Dividing the program into kernels keeps every operation, once.",
        "This is a fault of the compiler: please report the kernel.",
    ),
    diagnostic(
        "V060", "a mistake of ttexplore itself",
        "A library that it builds on, or its own code, raised an exception that no rule expects.",
        "Please report it with the kernel. Another form of the line that is named may work.",
    ),
)  # fmt: skip
