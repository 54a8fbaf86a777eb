"""VerifyError: a step of the lowering broke one of its laws. An internal error, found before anything wrong runs."""

from __future__ import annotations

from ttexplore.diagnostics.diagnostic import diagnostic

VERIFIER = (
    diagnostic(
        "V001", "unbalanced push and pop",
        "During a work item, as many tiles must leave a circular buffer as enter it, on every path; otherwise the "
        "next item starts at the wrong tile, or a kernel waits forever.",
        "Push in the producer what the consumer pops: compare the loops and conditions around both.",
    ),
    diagnostic(
        "V002", "tiles held across iterations",
        "A loop iteration starts with tiles that the previous iteration reserved or waited for: a push or pop is "
        "missing.",
        "Push reserved tiles and pop waited-for tiles in the same iteration.",
    ),
    diagnostic(
        "V003", "push without reserve",
        "A push publishes reserved tiles; tiles that were not reserved may still be in use by the consumer.",
        "Reserve tiles before you write them, and push each tile once.",
    ),
    diagnostic(
        "V004", "pop without wait",
        "A pop frees tiles that a wait has obtained.",
        "Wait for tiles before you read them, and pop each tile once.",
    ),
    diagnostic(
        "V005", "access to a tile that is not held",
        "A kernel may read only tiles that it has waited for, and write only tiles that it has reserved.",
        "Wait for or reserve enough tiles, or correct the tile index.",
    ),
    diagnostic(
        "V006", "unwritten tile is pushed",
        "Every tile of a block must be written before the block is pushed.",
        "Read, pack or store to each tile: compare the tile loop with the block.",
    ),
    diagnostic(
        "V007", "block larger than its buffer",
        "The kernel would wait forever.",
        "Give the circular buffer more pages, or move smaller blocks.",
    ),
    diagnostic(
        "V008", "block crosses the end of its buffer",
        "The chip does not wrap around within a block: it would silently read and write past the buffer.",
        "Make the number of pages a multiple of every block that is pushed or popped.",
    ),
    diagnostic(
        "V009", "deadlock",
        "The kernels of a core wait for each other, or one waits for itself.",
        "Give the full buffer more pages (stages), or pop earlier in its consumer; if all buffers are empty, a push "
        "is missing.",
    ),
    diagnostic(
        "V010", "unplanned user of a circular buffer",
        "Each circular buffer has one producer and one consumer, as planned.",
        "Move the operation to the planned kernel, or use another buffer; remove unused buffers from the plan.",
    ),
    diagnostic(
        "V011", "read not complete",
        "A NoC read is in flight until the barrier: the consumer would read stale data.",
        "Put noc_read_barrier between the reads and the push.",
    ),
    diagnostic(
        "V012", "write not complete",
        "A tile must stay in place until a write has sent it, and a kernel must not end before its writes have "
        "completed.",
        "Put noc_writes_flushed before the pop, and noc_write_barrier at the end.",
    ),
    diagnostic(
        "V013", "page outside its tensor",
        "A page index is outside the tensor: it would read or overwrite other data.",
        "Correct the page index, or skip pages outside the tensor.",
    ),
    diagnostic(
        "V014", "page accessed by two cores",
        "Cores run in any order, so it is undefined which write is last and whether a read sees it.",
        "Assign all work items that access the page to one core, or write to another tensor.",
    ),
    diagnostic(
        "V015", "wrong set of written pages",
        "The program must write every page that the kernel writes, and no other.",
        "Make the cores run every work item, and write whole blocks.",
    ),
    diagnostic(
        "V016", "page indices without a bound",
        "Without a bound, nothing can be proved about the accessed pages.",
        "Use loop variables and values known to the core as indices.",
    ),
    diagnostic(
        "V017", "cores that do not agree about a block that one sends",
        "A block is sent to the place where the sender's own circular buffer has room: each receiver must have "
        "reserved the same place, and told the sender so, and the sender must wait for all of them.",
        "Compare sender and receivers: the same steps, a count of all receivers, and each semaphore reset before it "
        "is waited for again.",
    ),
    diagnostic(
        "V020", "DST section out of order",
        "The math processor and the packer share DST: on every path, sections are acquired, committed, waited for and "
        "released.",
        "Use the order tile_regs_acquire, tile_regs_commit, tile_regs_wait, tile_regs_release.",
    ),
    diagnostic(
        "V021", "operation in the wrong part of a section",
        "Compute between acquire and commit; pack between wait and release.",
        "Move the operation to its part of the section.",
    ),
    diagnostic(
        "V022", "slot outside DST",
        "DST holds 8 tiles of 16 bits or 4 tiles of 32 bits; the chip does not report accesses beyond.",
        "Use smaller sub-blocks.",
    ),
    diagnostic(
        "V023", "slot with the wrong contents",
        "A slot may be read only after the section has written it; an operation that accumulates starts on an "
        "untouched slot.",
        "Correct the slot, or copy or compute the tile first.",
    ),
    diagnostic(
        "V030", "engine start-up missing or misplaced",
        "The start-up call configures unpacker, math and packer. It must come first, and only once.",
        "Put compute_startup first in the kernel, once.",
    ),
    diagnostic(
        "V031", "operation without its init",
        "Inits overwrite each other: an operation under the init of another one hangs or is silently wrong.",
        "Put the operation's own init before it, with the same arguments.",
    ),
    diagnostic(
        "V032", "wrong data format",
        "Unpacker and packer are configured for one format at a time; another format gives garbage.",
        "Reconfigure before the operation, and put its init after that.",
    ),
    diagnostic(
        "V033", "setting not undone",
        "Some operations change settings that others rely on.",
        "Put the operation's uninit after its last use.",
    ),
    diagnostic(
        "V035", "rows and tiles confused",
        "A circular buffer holds either tiles, or rows of elements that the compute kernel converts to tiles.",
        "Convert between the two, with the row width in the plan.",
    ),
    diagnostic(
        "V036", "copy of another shape",
        "The rows and columns of a block are those of the region of a tensor that it is copied from or to; otherwise "
        "elements move to wrong places.",
        "Copy a region with the rows and columns of the block, and move all of them.",
    ),
    diagnostic(
        "V034", "operation is wrong in this mode",
        "For this format or this width of DST, the chip computes something else than the operation says.",
        "Use another operation, or the other width of DST.",
    ),
    diagnostic(
        "V040", "work not done exactly once",
        "Each work item is run by exactly one core.",
        "Make the starts and counts of the cores cover all items, each once.",
    ),
    diagnostic(
        "V041", "core outside the compute grid",
        "The partition names a core outside the compute grid.",
        "Use cores of the grid.",
    ),
    diagnostic(
        "V042", "arguments that do not match the kernel",
        "Each kernel gets the arguments that it reads, in its order, and every core has a value for each.",
        "Make signature, partition and kernel agree.",
    ),
    diagnostic(
        "V043", "operands that do not match the operation",
        "An operation of the table takes operands of certain kinds, in a certain order.",
        "Pass the operands in the order of the operation table.",
    ),
    diagnostic(
        "V044", "inconsistent plan",
        "Sizes, counts and strides in the plan follow from the formats, the tensors and the target.",
        "Derive them from there.",
    ),
    diagnostic(
        "V045", "integers where floats are expected",
        "A tile in DST holds float32 or int32 numbers, and nothing converts them implicitly.",
        "Put a typecast before the operation.",
    ),
    diagnostic(
        "V050", "statement without a kernel line",
        "Every statement is linked to the kernel lines that it came from.",
        "Make new statements by a rule, which gives them the span of the statements that they replace.",
    ),
    diagnostic(
        "V051", "step lost or added operations",
        "Splitting the program into kernels keeps every operation, exactly once.",
        "This is a fault of the compiler: please report the kernel.",
    ),
    diagnostic(
        "V060", "internal error of ttexplore",
        "A library, or ttexplore itself, raised an exception that no rule expects.",
        "Please report it with the kernel. Rewriting the named line may avoid it.",
    ),
    diagnostic(
        "V061", "a step without what it relies on",
        "Each step of the lowering names what it relies on and what it establishes for the steps after it. Both are "
        "checked.",
        "This is a fault of the compiler: please report the kernel.",
    ),
)  # fmt: skip
