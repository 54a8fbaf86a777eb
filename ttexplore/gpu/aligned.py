"""The passes of both pipelines, aligned by what they do: TileLang's for a GPU, and ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Purpose:
    """What passes do: names of TileLang's passes, letters of our steps, and a sentence on both."""

    name: str
    gpu: tuple[str, ...]
    ours: tuple[str, ...]
    sentence: str


# Every pass of TileLang is in one row; a step of ours may do several things.
PURPOSES = (
    Purpose(
        "choose the chip", ("BindTarget",), ("A0",),
        "Both attach the target to the program; A0 adds the default schedule and layout, which a GPU has no say in.",
    ),
    Purpose(
        "decide where elements lie", ("LayoutInference", "ReducerPlanAndMaterialize"), ("A1",),
        "LayoutInference decides which thread holds which element of a fragment, and how shared memory is swizzled; A1 "
        "decides how tensors lie in DRAM, as tiles of 32x32, and what is padded.",
    ),
    Purpose(
        "distribute the blocks",
        ("MaterializeKernelLaunch", "PersistThreadblock", "LowerL2Persistent"), ("B1", "B2"),
        "A GPU launches the whole grid, and its hardware gives blocks to processors; B1 gives each core its list of "
        "blocks before the launch, and B2 writes the loop over them.",
    ),
    Purpose(
        "allocate on-chip memory",
        ("PlanAndUpdateBufferAllocationLocation", "HoistGlobalBufferAllocations", "StorageRewrite",
         "MergeSharedMemoryAllocations", "LowerSharedTmem", "LowerOpaqueBlock"), ("A2", "C1"),
        "Shared buffers become offsets into one allocation of a block of threads; A2 and C1 make them circular buffers "
        "in the L1 of a core, with a producer and a consumer.",
    ),
    Purpose(
        "overlap copies and computation", ("PipelinePlanning", "InjectSoftwarePipeline"), ("A2", "D3"),
        "num_stages becomes several versions of a buffer, and copies that run ahead in the loop; A2 gives a circular "
        "buffer several blocks, and D3 lets the reader run ahead as long as there is room.",
    ),
    Purpose(
        "lower tile operations", ("LowerTileOp",), ("C2",),
        "LowerTileOp turns T.copy, T.gemm and T.reduce into loops of each thread over its elements and into calls of "
        "tensor cores; C2 turns them into operations on whole tiles.",
    ),
    Purpose(
        "vectorise",
        ("VectorizeLoop", "LegalizeVectorizedLoop", "DecoupleTypeCast", "AddWrapperForSingleBufStore",
         "HoistBroadcastValues", "UnrollLoop"), (),
        "A thread loads and computes up to 16 bytes at once; there is nothing to do for tiles, of which an operation "
        "takes all 1,024 elements.",
    ),
    Purpose(
        "know what flows where", (), ("C3",),
        "C3 builds the graph of tensors, circular buffers and kernels, and numbers the buffers; on a GPU all threads "
        "see all of shared memory, and nothing is recorded of who reads what.",
    ),
    Purpose(
        "divide the work among threads or kernels",
        ("ProducerConsumerWarpSpecialized", "AutoWarpSpecialization", "MaterializeWSSchedule",
         "AnnotateWarpGroupRegAlloc", "AnnotateDeviceRegions", "SplitHostDevice"), ("D1",),
        "Warp specialisation gives copies to some warps and computation to others, in one kernel; SplitHostDevice "
        "separates the host's part. D1 always splits the program into three kernels, one for each kind of processor.",
    ),
    Purpose(
        "synchronise",
        ("LowerSharedBarrier", "ThreadSync", "FuseMBarrierArriveExpectTx", "InjectFenceProxy", "InjectTcgen05Fence",
         "MarkCudaSyncCalls"), ("D3",),
        "Barriers and __syncthreads stand between threads that write shared memory and threads that read it; D3 writes "
        "reserve, push, wait and pop between a producer and a consumer, and no kernel waits for all others.",
    ),
    Purpose(
        "use the registers of the matrix unit", ("InferFragment", "LowerThreadAllreduce"), ("D4", "D5"),
        "InferFragment marks fragments of tensor cores, which are registers of a warp; D5 divides blocks into what DST "
        "holds, acquires and releases it, and D4 sets up the engines.",
    ),
    Purpose(
        "choose instructions",
        ("LowerHopperIntrin", "LowerIntrin", "LowerLDGSTG", "LowerBlackwell2SM", "AnnotateDeviceBoundTmaCopies"), (),
        "Operations become instructions of one architecture; ours are calls of the SDK, the same for all chips.",
    ),
    Purpose(
        "address tensors",
        ("LowerAccessPtr", "FlattenBuffer", "NarrowDataType", "ConfigIndexBitwidth"), ("A3", "D2"),
        "Indices become offsets from a pointer; A3 and D2 make them page numbers, from which an accessor finds the "
        "bank and the address.",
    ),
    Purpose(
        "make the kernel callable",
        ("MakePackedAPI", "LowerDeviceKernelLaunch", "AnnotateReadOnlyParams", "HoistNonRestrictParams",
         "AnnotateEntryFunc", "Filter"), ("E1",),
        "A function of the host checks the tensors and launches the kernel with their pointers; E1 lists the compile-"
        "time, common and per-core arguments that the host program passes.",
    ),
    Purpose(
        "stay within bounds",
        ("LegalizeSafeMemoryAccess", "LegalizeNegativeIndex", "InjectAssumes", "VerifyMemory", "NestedLoopChecker",
         "ParallelLocalIndexChecker", "FragmentLoopChecker", "VerifyBufferInit", "VerifyReducerEpoch",
         "VerifyReducerConsumed"), ("A1",),
        "Accesses that may be out of bounds get a condition for each element; A1 pads tensors to whole tiles, and the "
        "verifier proves after each of our steps that no page outside a tensor is accessed.",
    ),
    Purpose(
        "simplify",
        ("Simplify", "LetInline", "RemoveNoOp", "RenormalizeSplitPattern", "HoistIfThenElse", "InsertHoistIfThenElse",
         "LoopUnswitching", "IfStmtBinding", "MergeIfStmt", "ConvertSSA", "CanonicalizeLegacyReducer"), (),
        "TileLang simplifies between its passes; each of our steps simplifies what it writes.",
    ),
    Purpose(
        "write the source", ("codegen",), (),
        "Both write C++ from the last program without looking for patterns in it; ours after E1, one file for each "
        "kernel.",
    ),
)  # fmt: skip

# Passes of earlier versions of TileLang, which documents and courses name, and the passes that do the same now; empty
# for those that are gone.
FORMER = {
    "LayoutReducer": "ReducerPlanAndMaterialize",
    "LoopVectorizeDynamic": "LegalizeVectorizedLoop",
    "MultiVersionBuffer": "InjectSoftwarePipeline",
    "WarpSpecialized": "ProducerConsumerWarpSpecialized",
    "InjectTmaBarrier": "FuseMBarrierArriveExpectTx",
    "RewriteWgmmaSync": "LowerTileOp",
    "RewriteUnsafeSelect": "Simplify",
    "InjectPTXAsyncCopy": "LowerTileOp",
    "LowerDeviceStorageAccessInfo": "",
}
