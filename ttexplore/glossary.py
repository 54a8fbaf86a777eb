"""The glossary: every word of the hardware, of the lowering and of the numbers that the product shows.

This is the one home of each term. ``ttexplore explain TERM`` prints an entry, docs/glossary.md lists all of them, and
the explorer shows an entry where the term stands as a heading.
"""

from __future__ import annotations

from dataclasses import dataclass

NO_COUNTERPART = "CUDA has none"


@dataclass(frozen=True, slots=True)
class Term:
    """A term with its meaning, in at most two sentences. `cuda` says what a CUDA programmer knows it as, or begins with
    "CUDA has none"; `aliases` are other spellings of it, `see` names related terms."""

    name: str
    meaning: str
    cuda: str
    aliases: tuple[str, ...] = ()
    see: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The fragment under which docs/glossary.md has the term, as GitHub makes it from the heading."""
        kept = (c for c in self.name.lower() if c.isalnum() or c in " -_")
        return "".join(kept).replace(" ", "-")

    @property
    def counterpart(self) -> str:
        """What CUDA has in its place, as a sentence of its own."""
        return self.cuda if self.cuda.startswith(NO_COUNTERPART) else f"In CUDA: {self.cuda}"

    @property
    def card(self) -> str:
        """What the explorer shows of it: the meaning, and in a line of its own the counterpart."""
        return f"{self.name}: {self.meaning}\n{self.counterpart}".replace("`", "")

    @property
    def text(self) -> str:
        """The entry as plain text."""
        also = f" (also: {', '.join(self.aliases)})" if self.aliases else ""
        related = f"\nSee also: {', '.join(self.see)}" if self.see else ""
        return f"{self.name}{also}\n{self.meaning}\n{self.counterpart}{related}"


SECTIONS: dict[str, tuple[Term, ...]] = {
    "The chip": (
        Term(
            "core",
            "A Tensix core: five small RISC-V processors, a matrix engine, a vector engine, two routers and a memory "
            "of its own, L1. A chip has a grid of cores, which see the memory of one another, and DRAM, only through "
            "the NoC.",
            cuda=(
                "A streaming multiprocessor (SM), but without warps, caches or a scheduler that hides latency: a core "
                "works on one item at a time."
            ),
            aliases=("Tensix core", "Tensix"),
            see=("L1", "NoC", "compute grid"),
        ),
        Term(
            "compute grid",
            "The rectangle of cores that run kernels, in logical coordinates (x, y) from (0, 0). Cores that dispatch "
            "programs, or that are harvested, are not in it.",
            cuda="The SMs of a GPU, which a program can count, but not choose by their place.",
            aliases=("core grid",),
            see=("harvested", "core range"),
        ),
        Term(
            "core range",
            "A rectangle of cores, given by its first and last logical coordinates. The host creates kernels and "
            "circular buffers on a set of core ranges.",
            cuda="A grid of SMs; in CUDA a launch has a number of blocks, and the hardware chooses the SM of each.",
        ),
        Term(
            "dispatch",
            "Cores outside the compute grid that launch programs on the others.",
            cuda="The front end and the block scheduler of a GPU, which are fixed hardware.",
            see=("compute grid",),
        ),
        Term(
            "harvested",
            "Switched off at the factory. A row (Wormhole) or column (Blackhole) of cores with a defect is "
            "harvested; the logical coordinates close the gap, the physical ones do not.",
            cuda="SMs that a product does not offer: an H100 has 132 of the 144 on its die.",
        ),
        Term(
            "L1",
            "The SRAM of one core, which holds the circular buffers, the kernels and whatever tensors are sharded "
            "into it. It is not a cache: nothing is in L1 unless a kernel put it there.",
            cuda="Shared memory, which a kernel fills itself too; not the L1 cache.",
            see=("circular buffer", "shard"),
        ),
        Term(
            "DRAM",
            "The chip's large memory, outside the cores. Kernels reach it only through the NoC.",
            cuda="Global memory, without an L2 cache in front of it.",
            see=("DRAM bank", "L1"),
        ),
        Term(
            "DRAM bank",
            "One of the independent parts of the chip's DRAM. An interleaved tensor spreads its pages over all banks "
            "in turn.",
            cuda="A channel of HBM; the GPU spreads addresses over its channels by itself.",
            see=("interleaved", "page"),
        ),
        Term(
            "Ethernet",
            "Cores with a link to another chip. The programs of ttexplore use one chip.",
            cuda="NVLink, the connection between GPUs.",
        ),
        Term(
            "ARC",
            "The processor that starts the chip and watches over it. Kernels do not use it.",
            cuda="The management processor of a GPU (GSP), which programs do not see either.",
        ),
        Term(
            "PCIe",
            "The connection to the host, through which tensors and programs reach the chip.",
            cuda="The same, as cudaMemcpy uses it.",
        ),
        Term(
            "NoC",
            "Network on chip: two one-way meshes that connect cores and DRAM. Kernels read and write pages over it "
            "asynchronously and wait for the transfers with a barrier.",
            cuda=(
                "CUDA has none: global loads and stores go through L2 and a crossbar that programs do not see. "
                "Nearest to a read of a page is an asynchronous copy, cp.async.bulk (TMA)."
            ),
            aliases=("network on chip",),
            see=("barrier",),
        ),
        Term(
            "barrier",
            "A point at which a kernel waits until its own NoC reads, or its own NoC writes, have completed. It is "
            "not a barrier between cores or threads.",
            cuda="Waiting for one's own asynchronous copies, as cp.async.wait_all does; not __syncthreads().",
            see=("NoC", "semaphore"),
        ),
        Term(
            "multicast",
            "A transfer over the NoC to the same place in the L1 of all cores of a rectangle. One core reads a block "
            "that several need at the same step, and sends it to the others, so that DRAM is read once.",
            cuda="Multicast of a TMA copy to the blocks of a cluster (cp.async.bulk with .multicast::cluster).",
            see=("NoC", "semaphore"),
        ),
        Term(
            "semaphore",
            "A counter in L1 that kernels on the same core or on other cores increment and wait for.",
            cuda=(
                "A counter that threads change with atomics and poll, in shared memory or, between SMs, in global "
                "memory."
            ),
        ),
        Term(
            "unpacker",
            "The part of a core that moves tiles from a circular buffer into the source registers, or directly into "
            "DST, and converts their data format.",
            cuda="Loading fragments from shared memory (ldmatrix) and converting them.",
            see=("SrcA and SrcB", "packer"),
        ),
        Term(
            "packer",
            "The part of a core that moves tiles from DST into a circular buffer and converts their data format. "
            "With accumulation in L1 it adds to what is there.",
            cuda="Converting accumulators and storing them in shared memory (stmatrix).",
            see=("DST", "accumulate"),
        ),
        Term(
            "SrcA and SrcB",
            "The source registers of the matrix engine. They hold at most 19 bits per number, so float32 becomes "
            "TF32 on its way through them.",
            cuda="The fragments of A and B, which mma takes from registers.",
            aliases=("SrcA", "SrcB", "source registers"),
            see=("TF32",),
        ),
        Term(
            "DST",
            "The destination registers, where the matrix engine and the vector engine leave their results. DST holds "
            "few tiles, half as many in 32 bits as in 16; kernels acquire it, compute, commit, pack and release.",
            cuda="The accumulators of the tensor core: registers of mma and wgmma, tensor memory on Blackwell GPUs.",
            aliases=("destination registers",),
            see=("section", "sub-block", "spill"),
        ),
        Term(
            "FPU",
            "The matrix engine: products of tiles, and sums, differences and products of elements, from SrcA and "
            "SrcB into DST.",
            cuda="The tensor core, which here adds, subtracts and multiplies elements, too.",
            aliases=("matrix engine", "matrix unit"),
            see=("math fidelity",),
        ),
        Term(
            "SFPU",
            "The vector engine: functions of elements, such as exp, on tiles that are in DST. It computes in float32 "
            "and int32.",
            cuda="CUDA cores and the special function units (SFU).",
            aliases=("vector engine", "vector unit"),
        ),
    ),
    "Data": (
        Term(
            "tile",
            "A square of 32 x 32 elements, the unit in which the engines compute. In memory it is four faces of 16 x "
            "16, one after another.",
            cuda="The shape of a fragment of the tensor core, such as 16 x 16; here, memory has the shape, too.",
            see=("face", "page"),
        ),
        Term(
            "face",
            "A quarter of a tile: 16 x 16 elements, stored contiguously.",
            cuda="The 8 x 8 matrices of which ldmatrix loads fragments.",
        ),
        Term(
            "page",
            "The unit in which a tensor is stored and moved: a tile, or a row of a row-major tensor.",
            cuda="CUDA has none: global memory has byte addresses. The box that one TMA copy moves is nearest.",
            see=("tile", "interleaved"),
        ),
        Term(
            "layout",
            "How a tensor lies in memory: tiles or rows, data format, DRAM or L1, interleaved or in shards, and its "
            "shape padded to whole pages.",
            cuda=(
                "The strides and the swizzle of a tensor: a CuTe layout, or the descriptor of a TMA copy (CUtensorMap)."
            ),
            see=("padding", "interleaved", "shard"),
        ),
        Term(
            "padding",
            "Elements behind the end of a tensor that fill its last tiles. Programs neither depend on them nor "
            "change what they mean: operations that would mix them into a result mask them first.",
            cuda="Elements out of bounds, which are not stored: kernels mask them, TMA copies fill them with zeros.",
        ),
        Term(
            "interleaved",
            "Stored with page i in bank i modulo the number of banks, so that reads of neighbouring pages spread "
            "over all banks.",
            cuda=(
                "What the memory controllers of a GPU do by themselves: neighbouring addresses lie on different "
                "channels."
            ),
            see=("shard",),
        ),
        Term(
            "shard",
            "The part of a tensor that is stored in the L1 of one core, or in one bank. A sharded tensor is cut by "
            "height, by width, or in blocks.",
            cuda=(
                "CUDA has none: shared memory does not outlive its thread block. Distributed shared memory of a "
                "cluster is nearest."
            ),
            aliases=("sharded", "sharding"),
            see=("interleaved",),
        ),
        Term(
            "data format",
            "How numbers are stored in a tile, such as Float16_b (bfloat16), Float32, Int32 or Bfp8_b.",
            cuda="The element type, such as __nv_bfloat16, float or __nv_fp8_e4m3.",
            see=("block float", "TF32"),
        ),
        Term(
            "block float",
            "A data format in which 16 numbers share one exponent. Bfp8_b keeps 8 bits for each of them: a sign and "
            "7 bits of mantissa.",
            cuda="The MX formats of Blackwell tensor cores, in which 32 numbers share a scale.",
            aliases=("Bfp8_b",),
        ),
        Term(
            "TF32",
            "A float32 with 10 bits of mantissa: what the source registers hold of a float32.",
            cuda="The same: the format in which tensor cores multiply float32.",
            aliases=("tfloat32",),
        ),
        Term(
            "tensor accessor",
            "The object with which a kernel turns a page number into an address. It is built from compile-time "
            "arguments and the base address of the tensor.",
            cuda="A pointer with strides, or the descriptor of a TMA copy (CUtensorMap).",
            aliases=("TensorAccessor", "accessor"),
            see=("page", "runtime argument"),
        ),
        Term(
            "role",
            "Whether a kernel reads a tensor (input), writes all of it (output), or both (inout), as where it may "
            "write only a part. The writer loads the blocks of an inout tensor, too, because it knows when those that "
            "it stored have arrived.",
            cuda="Whether a parameter of the kernel is a pointer to const.",
        ),
    ),
    "The program": (
        Term(
            "kernel",
            "In TileLang, the function that is lowered. On the chip, one of the three programs of a core: reader, "
            "compute and writer.",
            cuda=(
                "A __global__ function; the three programs of a core are like the specialized warps of a thread block."
            ),
            see=("reader", "compute kernel", "writer"),
        ),
        Term(
            "reader",
            "The kernel that reads pages of the inputs over the NoC into circular buffers. A data-movement kernel.",
            cuda="A producer warp, which fills shared memory with cp.async or TMA copies.",
            see=("writer", "compute kernel"),
        ),
        Term(
            "compute kernel",
            "The kernel that computes on tiles. Its text is compiled three times, for the processors that unpack, do "
            "the math and pack.",
            cuda="The consumer warps, which issue mma or wgmma.",
            aliases=("compute",),
            see=("unpacker", "DST", "packer"),
        ),
        Term(
            "writer",
            "The kernel that writes pages of the outputs from circular buffers over the NoC. With loaded_by, it also "
            "reads inputs; with partials, it sends partial sums to the next core.",
            cuda="The warp of the epilogue that stores results with TMA copies.",
        ),
        Term(
            "dataflow",
            "Which kernel passes tiles to which, through which circular buffers. It is the same on every core.",
            cuda="The pipeline between producer and consumer warps of a thread block.",
            aliases=("tile dataflow",),
            see=("circular buffer",),
        ),
        Term(
            "circular buffer",
            "A queue of pages in the L1 of one core: its producer reserves room and pushes pages, its consumer waits "
            "for pages and pops them. Kernels of one core synchronise through nothing else.",
            cuda=(
                "A ring of stages in shared memory, with cp.async groups or full and empty mbarriers between producer "
                "and consumer warps."
            ),
            aliases=("CB", "dataflow buffer", "buffer"),
            see=("reserve", "push", "wait", "pop"),
        ),
        Term(
            "producer",
            "The kernel that fills a circular buffer: it reserves room and pushes pages.",
            cuda="The warp that fills a stage of a cuda::pipeline.",
            see=("consumer", "reserve", "push"),
        ),
        Term(
            "consumer",
            "The kernel that drains a circular buffer: it waits for pages and pops them.",
            cuda="The warps that use a stage of a cuda::pipeline.",
            see=("producer", "wait", "pop"),
        ),
        Term(
            "protocol",
            "The calls with which kernels share circular buffers and complete transfers: reserve, push, wait, pop, and "
            "the barriers of the NoC.",
            cuda=(
                "Acquire, commit, wait and release of a cuda::pipeline, or arrive and wait at full and empty mbarriers."
            ),
            see=("circular buffer", "barrier"),
        ),
        Term(
            "reserve",
            "Wait until a circular buffer has room for a number of pages (`cb_reserve_back`).",
            cuda="producer_acquire of a cuda::pipeline, or a wait at the empty mbarrier of a stage.",
        ),
        Term(
            "push",
            "Make reserved pages visible to the consumer (`cb_push_back`).",
            cuda="producer_commit of a cuda::pipeline, or an arrive at the full mbarrier of a stage.",
        ),
        Term(
            "wait",
            "Wait until a circular buffer holds a number of pages (`cb_wait_front`).",
            cuda="consumer_wait of a cuda::pipeline, or a wait at the full mbarrier of a stage.",
        ),
        Term(
            "pop",
            "Give the room of consumed pages back to the producer (`cb_pop_front`).",
            cuda="consumer_release of a cuda::pipeline, or an arrive at the empty mbarrier of a stage.",
        ),
        Term(
            "deadlock",
            "A cycle of kernels that wait for one another, such as a reader waiting for room in a buffer that the "
            "compute kernel never pops.",
            cuda=(
                "The same: warps that wait at mbarriers for one another, or a __syncthreads() that some threads never "
                "reach."
            ),
        ),
        Term(
            "stages",
            "How many blocks a circular buffer holds. With two or more the reader fills one while the compute kernel "
            "uses another.",
            cuda="num_stages of T.Pipelined: how many buffers in shared memory a software pipeline uses.",
            aliases=("depth", "double buffering"),
        ),
        Term(
            "block",
            "A rectangle of a tensor that a kernel copies or computes at once: one or more tiles.",
            cuda="The tile of a thread block, such as block_M x block_K in shared memory.",
        ),
        Term(
            "item",
            "One iteration of the kernel's grid, the work of one GPU thread block. Each core runs a list or a range "
            "of items, one after another.",
            cuda="A thread block: one blockIdx of the grid.",
            aliases=("work item",),
            see=("partition", "persistent loop"),
        ),
        Term(
            "persistent loop",
            "The loop of a core over its items. It takes the place of the grid of a GPU launch.",
            cuda="A persistent kernel: as many thread blocks as SMs, each with a loop over tiles.",
        ),
        Term(
            "launch of a kernel",
            "One T.Kernel of several, or a part of one between T.sync_grid: a program of its own. Launches run one "
            "after another, and only tensors remain between them.",
            cuda="One launch of several in a stream; T.sync_grid is grid.sync() of a cooperative launch.",
        ),
        Term(
            "compile-time argument",
            "A number that is fixed when the C++ of a kernel is compiled.",
            cuda="A template parameter of the kernel.",
            see=("runtime argument",),
        ),
        Term(
            "runtime argument",
            "A number that the host passes to a kernel before it runs: per core, or common to all cores.",
            cuda="A parameter of the __global__ function, which is the same for all thread blocks.",
            aliases=("common runtime argument", "argument"),
            see=("compile-time argument",),
        ),
        Term(
            "init",
            "A call that configures the engines for an operation (`add_tiles_init`). It stays in force until another "
            "init of the same engine.",
            cuda="CUDA has none: every instruction of the tensor core names its own shapes and types.",
            aliases=("uninit", "reconfiguration"),
        ),
        Term(
            "section",
            "What a compute kernel does between acquiring DST and releasing it.",
            cuda=(
                "CUDA has none for registers; tcgen05.alloc and tcgen05.dealloc of tensor memory on Blackwell GPUs "
                "are nearest."
            ),
            see=("DST", "sub-block"),
        ),
        Term(
            "sub-block",
            "The part of a block that is computed in one section because DST cannot hold the block.",
            cuda="The part of a block's tile that the accumulators of one warp hold.",
            aliases=("subblock",),
            see=("section", "DST"),
        ),
        Term(
            "spill",
            "Pack a value that is still needed into a circular buffer, because DST has no room for it. It is "
            "reloaded later.",
            cuda="Registers that spill to local memory; there the compiler does it unseen.",
            aliases=("reload", "partials"),
        ),
        Term(
            "epilogue",
            "Element-wise work on the result of a matrix product. Fused, it finds the result in DST after the last "
            "iteration of the loop over K; otherwise the result is spilled and reloaded.",
            cuda="The epilogue of a CUTLASS kernel, which works on accumulators in registers.",
        ),
        Term(
            "accumulate",
            "How a sum over several iterations is kept: in DST, by spilling and reloading partial sums, or in L1, "
            "where the packer adds to what is there.",
            cuda="Accumulators in registers over the loop of K; sums in memory are like those of split-K.",
            aliases=("accumulation",),
        ),
    ),
    "The lowering": (
        Term(
            "step",
            "One pass as it ran: the program before and after, the options that it used, and the time that it took. "
            "A step may have parts, which are steps themselves.",
            cuda="CUDA has none: nvcc keeps PTX and SASS, but not the program after each of its passes.",
            see=("pass", "plan"),
        ),
        Term(
            "pass",
            "A function from program to program. Some passes decide facts, others rewrite the IR.",
            cuda="A pass of LLVM, on which nvcc is built.",
        ),
        Term(
            "IR",
            "The program between kernel and C++: TIR, the tensor IR of TVM, with operations of ours for tiles and "
            "circular buffers.",
            cuda="NVVM IR and PTX, between CUDA C++ and SASS.",
            aliases=("TIR", "program"),
        ),
        Term(
            "plan",
            "The facts that passes decide: layouts, circular buffers, partition, accessors, arguments. It is "
            "exported as `tt.plan.json`.",
            cuda="CUDA has none: the host's code chooses grid, shared memory and tensor maps of a launch.",
        ),
        Term(
            "origin",
            "The kernel line that a line of IR or C++ comes from: exact, derived by a pass, or inferred from the "
            "enclosing statement.",
            cuda="The line information of nvcc -lineinfo, which leads from SASS to source lines.",
            aliases=("linked",),
        ),
        Term(
            "partition",
            "The assignment of items to cores.",
            cuda="The assignment of thread blocks to SMs, which the hardware makes at run time.",
            see=("policy", "order", "item"),
        ),
        Term(
            "signature",
            "The arguments of each kernel, compile-time and runtime, in order, and where their values come from.",
            cuda="The parameter list of the __global__ function.",
            see=("compile-time argument", "runtime argument"),
        ),
        Term(
            "share of the mean",
            "The items of a core relative to the average over all cores with work. The core with the largest share "
            "finishes last.",
            cuda="Wave quantization: the SMs that idle while the last thread blocks run.",
            aliases=("imbalance",),
            see=("partition",),
        ),
        Term(
            "policy",
            "How items are assigned to cores: in contiguous runs, strided, by rectangle, by the shards of a tensor, "
            "or explicitly.",
            cuda="The tile scheduler of a CUTLASS kernel; for other kernels, the hardware decides.",
        ),
        Term(
            "order",
            "The order in which a core works through its items, such as row-major or Z-order.",
            cuda="Rasterization or swizzling of thread blocks (T.use_swizzle), there for the sake of the L2 cache.",
        ),
        Term(
            "target",
            "The chip that a program is for, as a model: grid, memories, rates and costs.",
            cuda="The architecture that nvcc compiles for, such as sm_90a.",
        ),
        Term(
            "thread group",
            "On a GPU, threads of a block that take the same branches (`T.ws(0)`, `if tx < 128:`) and hand blocks to "
            "other groups. The groups become one sequence of statements, which is proved equal to them, and the "
            "lowering splits that into reader, compute kernel and writer.",
            cuda="The same: specialized warps or warpgroups of a thread block.",
            aliases=("warp group", "warp specialisation", "warp specialization"),
            see=("mbarrier", "reader", "compute kernel", "writer"),
        ),
        Term(
            "mbarrier",
            "On a GPU, a counter in shared memory at which threads arrive and for whose phases, of parity 0 and 1 in "
            "turns, others wait. A barrier that says that a block is full becomes push and wait of a circular buffer, "
            "one that says that it is empty becomes pop and reserve.",
            cuda="The same: mbarrier in PTX. A ring of n slots becomes a circular buffer n blocks deep.",
            aliases=("barrier phase", "parity"),
            see=("thread group", "circular buffer", "push", "pop"),
        ),
    ),
    "GPU words": (
        Term(
            "thread block",
            "The threads that a GPU starts together on one multiprocessor for one blockIdx. Here the work of a thread "
            "block is an item, and its threads are gone: one instruction works on a whole tile.",
            cuda="The same; cooperative thread array (CTA) in PTX.",
            see=("item", "tile", "core"),
        ),
        Term(
            "warp",
            "32 threads of a GPU that execute one instruction together. A core has none: its processors each run a "
            "single thread, and the engines work on tiles.",
            cuda="The same: threadIdx.x / 32 numbers the warps of a thread block.",
            see=("thread block", "core", "thread group"),
        ),
        Term(
            "__syncthreads",
            "The point at which the threads of a thread block wait for one another, for example before they use what "
            "they have loaded. Here, push and wait of a circular buffer order the kernels of a core.",
            cuda="The same: bar.sync in PTX.",
            see=("protocol", "circular buffer", "barrier"),
        ),
        Term(
            "occupancy",
            "How many warps a multiprocessor of a GPU holds at once, as a share of the most that it can hold; it "
            "switches between them to hide latency. A core works on one item at a time and hides latency with "
            "circular buffers of two or more blocks.",
            cuda="The same: cudaOccupancyMaxActiveBlocksPerMultiprocessor counts the thread blocks.",
            see=("stages", "item", "warp"),
        ),
    ),
    "Numbers": (
        Term(
            "reference",
            "The result of the traced kernel before any step, computed with NumPy. Steps and runs are compared with "
            "it.",
            cuda="The result of NumPy or PyTorch with which a kernel's test compares.",
        ),
        Term(
            "PCC",
            "Pearson's correlation coefficient between a result and the reference. 1 means that they agree up to a "
            "scale and an offset.",
            cuda="CUDA has none: its tests compare elements, as torch.allclose does.",
            aliases=("correlation",),
        ),
        Term(
            "max error",
            "The largest difference between a result and the reference.",
            cuda="What atol of torch.allclose bounds.",
        ),
        Term(
            "max relative error",
            "The largest difference between a result and the reference, divided by the largest value of the reference.",
            cuda=(
                "Like what rtol of torch.allclose bounds, but relative to the largest value, not to each element's own."
            ),
            see=("max error",),
        ),
        Term(
            "ULP",
            "Unit in the last place: the distance between a number and the next larger one that its data format holds.",
            cuda="The same: the CUDA C++ Programming Guide states the errors of its functions in ULP.",
        ),
        Term(
            "math fidelity",
            "How many passes the matrix engine makes over the bits of a product's mantissas: LoFi one, HiFi2 two, "
            "HiFi3 three, HiFi4 four. More passes are more exact and slower.",
            cuda="The precision of the tensor core's inputs: TF32, BF16, or several products for one, as in 3xTF32.",
            aliases=("fidelity", "math_fidelity", "LoFi", "HiFi2", "HiFi3", "HiFi4"),
        ),
        Term(
            "approximation mode",
            "A setting with which the vector engine computes some functions faster and less exactly.",
            cuda="Fast math: nvcc -use_fast_math, or functions such as __expf.",
            aliases=("math_approx_mode",),
        ),
        Term(
            "wide DST",
            "DST with 32 bits per number (`fp32_dest_acc_en`): exact sums, half as many tiles.",
            cuda="float32 accumulators of mma in place of float16 ones.",
            aliases=("fp32 DST", "fp32_dest_acc_en"),
            see=("DST",),
        ),
    ),
    "Running": (
        Term(
            "backend",
            "What runs a program: the reference, the interpreter, the emulator, or the real SDK.",
            cuda="CUDA has none: its kernels run on a GPU.",
        ),
        Term(
            "interpreter",
            "Runs the IR after any step with NumPy, as three communicating kernels on each core.",
            cuda="CUDA has none: Triton's interpreter (TRITON_INTERPRET=1) is similar.",
        ),
        Term(
            "emulator",
            "Runs the emitted C++ as it is, compiled for the host, with the arithmetic of the engines.",
            cuda="CUDA has none: its device emulation (nvcc -deviceemu) no longer exists.",
        ),
        Term(
            "simulated chip",
            "A program that executes what the real SDK's compiler made, instruction by instruction: wolfpine or ttsim.",
            cuda="A simulator of GPUs such as GPGPU-Sim, which executes PTX or SASS.",
            aliases=("wolfpine", "ttsim"),
        ),
        Term(
            "sweep",
            "A search over schedules: a kernel is lowered, verified and estimated with each of many values of its "
            "arguments and options, and the best are run.",
            cuda="Autotuning, as Triton and CUTLASS do it, but by an estimate in place of runs on the chip.",
            see=("Pareto front",),
        ),
        Term(
            "estimate",
            "The time that the program would take on its target, predicted by a replay of what its processors do. "
            "Nothing is run: docs/clock.md says what the replay knows, and how far it is from published times.",
            cuda="CUDA has none: performance models such as GPGPU-Sim's, or the roofline of Nsight Compute.",
            aliases=("predicted time",),
            see=("bound", "roofline", "peak"),
        ),
        Term(
            "bound",
            "What a program waits for most: the resource, such as DRAM or the matrix engine, that would save most of "
            "its time if it took none.",
            cuda="What Nsight Compute's Speed of Light calls compute bound, memory bound or latency bound.",
            see=("estimate",),
        ),
        Term(
            "roofline",
            "The shortest time that the chip allows: all cores compute at their peak, or DRAM transfers each tensor "
            "once at its peak, whichever takes longer.",
            cuda="The roofline of Nsight Compute, as a time instead of a rate.",
            see=("peak", "estimate"),
        ),
        Term(
            "peak",
            "The rate of the matrix engines of all cores at the math fidelity of the program, if they never waited.",
            cuda="The peak throughput of the tensor cores.",
            see=("roofline", "math fidelity"),
        ),
        Term(
            "Pareto front",
            "Of several lowerings, those that no other one beats in one number, such as time, without being worse in "
            "the other, such as L1.",
            cuda="CUDA has none: it is a term of optimization in general.",
            see=("sweep",),
        ),
        Term(
            "timeline",
            "What happened on a core in a recorded run: which kernel ran or waited when, and how full each buffer was.",
            cuda=(
                "CUDA has none: Nsight Systems shows kernels over time, and Nsight Compute counts the stalls of warps."
            ),
            aliases=("time travel", "recorded run"),
        ),
    ),
}

TERMS: dict[str, Term] = {term.name: term for section in SECTIONS.values() for term in section}
# Each name and alias in lower case, longest first: a pattern of alternatives in this order finds the longest match.
SPELLINGS: dict[str, Term] = dict(
    sorted(
        ((name.casefold(), term) for term in TERMS.values() for name in (term.name, *term.aliases)),
        key=lambda entry: (-len(entry[0]), entry[0]),
    )
)


def term(name: str) -> Term | None:
    """The entry for a term or one of its aliases, in upper or lower case; None if there is none."""
    return SPELLINGS.get(name.strip().casefold())
