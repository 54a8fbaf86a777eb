// All that travels between Python and the page. Python's half is `ttexplore/views/explorer.py` for a lowering,
// `ttexplore/views/runs/recording.py` for a recorded run and `ttexplore/session/widget.py` for questions and answers;
// `tests/widgets/test_messages.py` holds what they send to these types. Lines, pages and places count from 0 unless
// it says otherwise; -1 stands for none.

/** What the widget's model holds. A page without Python has some of it. */
export interface Traits {
  /** A `Lowering`, as deflated JSON; empty where there are several launches. */
  data: Bytes;
  /** The launches of a kernel with several, and a drawing of them. */
  launches?: LaunchState[];
  chain?: string;
  /** A `Recording`, as deflated JSON: what a page brings along. */
  timeline?: Bytes;
  backends?: Backend[];
  targets?: string[];
  inputs?: InputKind[];
  /** Why Python cannot do what it may be asked for. */
  missing?: Partial<Record<Question["do"], string>>;
  /** Why this explorer shows what is no longer so; empty while it does not. */
  stale?: string;
  /** Numbers by the names of what a user has arranged: shares of panes, a height in pixels. */
  arrangement?: Arrangement;
  /** Where to go; it may change. */
  place?: Place;
  /** Where this widget was left, for a view of it that opens later and for the explorer that replaces it when the cell
   * runs again; with the text of the kernel there, if it was edited. */
  here?: (Place & { text?: string }) | null;
  /** The name of the widget's model; empty or missing where it has none. */
  identity?: string | null;
  /** The questions that Python has not answered yet, of whatever page asked them. */
  running?: Running[];
  /** False in a page without Python. */
  live?: boolean;
  /** The card of a run that a page brings along, as HTML. */
  recorded_run?: string;
  /** The predicted time of the lowering, where a page brings it along. */
  estimate?: Estimate;
  /** The GPU lanes of the lowering, and the module that shows them, where a page brings them along. */
  gpu?: Gpu[];
  module?: string;
}

/** A launch, how far its lowering came, and that lowering. */
export interface LaunchState { name: string; state: string; failed: boolean; data: Bytes }

export type Bytes = ArrayBuffer | ArrayBufferView<ArrayBuffer>;
/** A backend, why it cannot run (empty where it can), whether it has a choice of arithmetic, and its limit in seconds. */
export interface Backend { name: string; missing: string; arithmetic: boolean; limit: number | null }
/** A tab, the letter of a step, numbers of kernel lines with commas between, the name of a file. */
/** `lowering` is one that a link names and the page lacks, `launch` the name of one of several. */
export interface Place { lowering?: string; launch?: string; tab?: string; step?: string; pin?: string; file?: string }
export type Arrangement = Record<string, number[]>;
/** A question in progress, asked `since` then, in seconds since 1970; `words` say what was asked for. */
export interface Running { id: string; do: Exclude<Question["do"], "advice" | "cancel" | "costs" | "edit" | "estimate" | "gpu" | "module" | "trace" | "waiting">; variant: string; words: string; since: number }
export type InputKind = [name: string, what: string, seeded: boolean];

/** One lowering. Texts, places, sets of origins and listings are stored once and named by their positions. */
export interface Lowering {
  form: number;
  kernel: string;
  target: string;
  /** File and line of the kernel. */
  where: string;
  facts: [name: string, value: string][];
  /** The kernel's own lines; `lines` are their numbers, 0 where unknown. */
  source: { listing: number; lines: number[] };
  steps: Step[];
  files: EmittedFile[];
  /** Classes of lines that can be hidden. */
  classes: string[];
  /** Each input as "name dtype shape". */
  inputs: string[];
  outputs: Output[];
  cores: Cores | null;
  buffers: Buffers | null;
  /** Graphs of what happens, in the order of the steps from which on they are true. */
  flows: Flow[];
  /** The whole in a few numbers: what, and how many. */
  figures: [what: string, text: string][];
  /** Definitions of terms by their spellings, in lower case, longest first. */
  terms: Record<string, string>;
  texts: string[];
  places: [file: string, line: number][];
  /** Flat: place, kind, place, kind ... A kind is a position in `KINDS` of `model/lowering.js`. */
  origins: number[][];
  /**
   * Flat: text, origins, class (0 for none, else one more than its position in `classes`) and work (0 computes, 1 moves,
   * 2 controls, 3 is around that) for each line.
   */
  listings: number[][];
}

/** How many tiles an output has along each dimension; a vector has one. */
export interface Output { name: string; tiles: number[] }

export interface Step {
  name: string;
  letter: string;
  stage: string;
  /** The position of the step that it is a part of; parts follow their step. */
  part_of: number;
  summary: string;
  prose: string[];
  glyph: string;
  state: string;
  ms: number;
  ir: Diff;
  plan: Diff;
  coverage: Coverage;
  options: Option[];
  error: Failure | null;
}

/** How many statements are exact, derived, inferred and unknown. */
export type Coverage = [exact: number, derived: number, inferred: number, unknown: number];

export interface Diff {
  before: number;
  after: number;
  rows: Row[];
  counts: Counts;
  renames: [old: string, name: string][];
  /** The rules that made lines, each with what it does. */
  rules: [rule: string, sentence: string][];
  /** What rules did: a position in `rules`, the lines before that it replaced. `made[0]` is nothing. */
  made: [rule: number, before: number[]][][];
  /** For each line before and after, which of `made` replaced or made it; empty for a plan. */
  why: number[][];
}

export type Counts = [added: number, removed: number, indented: number, renamed: number, moved: number];

/** A row of a diff: its kind, a position in `ROWS` of `model/diff.js`, the line before, the line after, and more. */
export type Row =
  | [equal: 0, before: number, after: number, length: number]
  | [addedRemovedIndented: 1 | 2 | 4, before: number, after: number]
  | [changedRenamed: 3 | 5, before: number, after: number, piecesBefore: Pieces, piecesAfter: Pieces]
  | [moved: 6, before: number, after: number, partner: number];

/** The lengths of the pieces of a changed line, alternately same and other. */
export type Pieces = number[];

export interface Option {
  name: string;
  /** The value as one writes it, and as it is shown. */
  text: string;
  shown: string;
  example: string;
  choices: string[];
  /** The policy that the option goes with; empty for all. */
  policy: string;
  /** Who set it. */
  by: string;
  /** What it is, its default, and why it has no effect, if so. */
  help: string;
  /** Why no value of it changes anything here; empty where one may. */
  idle: string;
}

export type StepChange = [glyph: string, words: string];

export interface EmittedFile { name: string; language: string; listing: number; coverage: Coverage }

export interface Cores {
  svg: string;
  work: string;
  summary: string;
  cores: Core[];
  measures: Measure[];
}

/** A number for each of the cores, in their order: as text, as label on the map (empty for 0), as step of the heat's scale. */
export interface Measure {
  name: string;
  shown: string[];
  labels: string[];
  steps: number[];
  /** What the colours mean, in SVG. */
  legend: string;
}

/** The predicted time of a program. `share` is the part of the peak that it reaches, in percent; `gains` are what each
 * resource would save if it were free: the time then, and the percentage that it is of the time now. */
export interface Estimate {
  badge: string;
  title: string;
  /** Whether it holds for the inputs that it was asked for with, because their elements decide it. */
  of_inputs: boolean;
  share: number;
  facts: [name: string, text: string][];
  gains: [name: string, time: string, percent: number][];
  /** As those of a lowering. */
  figures: [what: string, text: string][];
  measures: Measure[];
  /** What lines cost; null where that takes longer, and is to be asked for. */
  costs: Costs | null;
}

/** What lines cost on a core that ends last: of the kernel, by their numbers, and of files, by their names and numbers. */
export interface Costs { kernel: Record<string, Cost>; files: Record<string, Record<string, Cost>> }
/** The percentages of the time in which the processor that spends most on a line works and waits, and all in words. */
export type Cost = [works: number, waits: number, words: string];

/** When the processors of a core work and what they wait for, in nanoseconds from the start of the kernels; what repeats
 * is left out in `gaps`. */
export interface CoreTrace {
  end: number;
  note: string;
  unit: string;
  /** What is waited for. */
  kinds: string[];
  /** `parts` are flat: start, end, how much of it is work, and what the rest waits for: a position in `kinds`, -1 for none. */
  processors: { name: string; told: string; parts: number[] }[];
  gaps: [start: number, end: number][];
}

/** What a page adds to the tables of a lowering: listings with texts, places and sets of origins of their own. */
export type Tables = Pick<Lowering, "texts" | "places" | "origins" | "listings">;

/** A GPU lane beside a lowering. Its source is missing where a pass failed, with `error`, and so are the concepts. */
export interface Gpu extends Tables {
  arch: string;
  /** What can be chosen, and how it is shown. */
  offered: [arch: string, shown: string][];
  file: { name: string; listing: number } | null;
  /** Whether TileLang gave it at another time. */
  recorded: boolean;
  remarks: string[];
  concepts: Concept[];
  passes: AlignedPasses[];
  error: Failure | null;
  /** What the kernel was ported from takes the place of a lane. */
  port: PortedSource | null;
}

/** A foreign source: the rows of the porting table that it is about, and where its constructs are, from 1, with the
 * position of their row. */
export interface PortedSource {
  language: string;
  rows: { name: string; note: string; pitfall: string; tilelang: string[]; metalium: string[] }[];
  marks: [line: number, column: number, text: string, row: number][];
}

/** What an idea is called on both sides, and what the two programs do of it. */
export interface Concept { names: [gpu: string, ours: string]; sentence: string; facts: [gpu: Fact[], ours: Fact[]] }
/** Runs of lines, from 1, and how many others there are. */
export interface Fact { text: string; lines: [file: string, first: number, last: number][]; more: string }
/** Passes that do the same: those of the lane in words, ours with their letters. */
export interface AlignedPasses { name: string; sentence: string; gpu: string[]; ours: [words: string, letter: string][] }

export interface Core {
  x: number;
  y: number;
  items: number;
  noc: number[] | null;
  values: [name: string, value: number][];
  listed: number[];
  /** The runtime arguments of each kernel. */
  arguments: Record<string, [name: string, value: string][]>;
}

export interface Buffers {
  l1: string;
  buffers: CircularBuffer[];
}

/** A graph of kernel statements or of tile operations: the drawing names nodes, edges and frames by their positions. That
 * of the circular buffers of a program that computes nothing has none of them. */
export interface Flow {
  /** The first step that it is true of. */
  step: number;
  words: string;
  svg: string;
  /** The kernel line, 0 for none, and the frame around the node, -1 for none. */
  nodes: { title: string; line: number; frame: number; facts: Named[] }[];
  /** For each frame the one around it, -1 for none. */
  frames: number[];
  /** `ends` are positions of nodes, or names of what is beside the kernel. */
  edges: { title: string; ends: [from: number | string, to: number | string]; facts: Named[] }[];
  /** What is beside the kernel. */
  sides: Record<string, Named[]>;
}
export type Named = [name: string, text: string];

export interface CircularBuffer {
  name: string;
  index: number | null;
  format: string;
  pages: number;
  block_pages: number;
  stages: number;
  page_size: string;
  size: string;
  producer: string;
  consumer: string;
  /** The kernel line; 0 for none. */
  line: number;
  reason: string;
  /** Tiles that go in and out per work item; null where loops vary. */
  in: number | null;
  out: number | null;
}

/** A recorded run. Cores that did the same at the same times share a pattern. */
export interface Recording {
  /** The core that was asked for. */
  core: number[];
  /** How many cores are recorded and why not all; empty if all are. */
  missing: string;
  /** What the map of cores shows. */
  map: string;
  /** What is drawn, and what a step is. */
  unit: string;
  deadlock: string[];
  kernels: string[];
  operations: string[];
  tensors: string[];
  buffers: [name: string, number: number, capacity: number][];
  /** C++ line from 1, its text, kernel line (0 for none). */
  lines: [line: number, text: string, kernelLine: number][];
  cores: [x: number, y: number, pattern: number][];
  /** For each core the pages that it read and wrote, in the order of its events. */
  pages: number[][];
  patterns: Pattern[];
}

/** What happened on a core, in order of time. Events are columns: `kernel`, `operation` ... hold one number for each; -1 is none. */
export interface Pattern {
  /** How many events are left out at the end, and how many cores are alike. */
  note: string;
  /** Differences; the time of an event is their sum. */
  time: number[];
  kernel: number[];
  operation: number[];
  buffer: number[];
  amount: number[];
  line: number[];
  tensor: number[];
  waits: Wait[];
}

/** A kernel that waits from `start` until `end`: for room (1) or for tiles (0), `amount` of them; stuck if 1. */
export type Wait = [
  kernel: number, start: number, end: number, room: number, buffer: number, amount: number, line: number,
  other: string, stuck: number,
];

/** How a tile was made, and what the recording does not tell. */
export interface TileHistory {
  tensor: string;
  tile: number[];
  facts: [name: string, value: string][];
  notes: string[];
  stops: Stop[];
}

/** What a line of the C++ did, in so many turns; C++ line from 1 and kernel line, 0 for none. A host has neither. */
export interface Stop { kernel: string; core: number[]; line: number; text: string; own: number; turns: number; does: string }

export interface Failure {
  kind: string;
  message: string[];
  hint: string[];
  where: string;
  /** The kernel line; 0 for none. */
  line: number;
  code: string;
  /** Who waits for whom, as SVG. */
  drawing?: string;
  /** Lines of emitted files that it is about. */
  places?: Marked[];
  fix?: Fix | OptionFix;
  /** The name of the option whose value is wrong; empty for none. */
  option?: string;
}

/** A line of an emitted file, from 1: wrong, or where its kernel waits for ever; `changed` is said by the page. */
export interface Marked { file: string; line: number; kind: "error" | "stuck" | "changed"; message: string }
/** A line that is missing in the C++ of a kernel: `text` goes before `line`, from 1, between the two lines `around`. */
export interface Fix { kernel: string; line: number; text: string; around: string[] }
/** Values of options with which the program ends. */
export interface OptionFix { options: Record<string, string> }

/** A lowering that takes less time: options or arguments by name, in `words` too, and what bounds the program without them. */
export interface Advice { cause: string; words: string; told: string; percent: number; wish: Record<string, string> }

/** A step, or a part of the one before. */
export type CheckedStep = { letter: string; step: string; passed: boolean; pcc: string; error: string; message: string };

/** What inputs a run takes: a kind with its seed, or `names` of variables where `inputs` is no kind. */
export interface Inputs { inputs: string; seed: number; names: string }

/** A time limit in seconds, null for the usual one, and what other pages are told of the question. */
export interface Asked { limit: number | null; words: string }

/** The C++ of kernels that were edited, by role. */
export type Edits = Record<string, string>;

export type Question =
  | ({ do: "run"; backend: string; arithmetic: string; code?: Edits; variant?: string } & Inputs & Asked)
  | ({ do: "check"; variant?: string } & Inputs & Asked)
  | ({ do: "record"; core: string; code: Edits } & Inputs & Asked)
  /** `output` is the position among the outputs. */
  | ({ do: "tile"; output: number; tile: number[]; code: Edits } & Inputs & Asked)
  /** `arguments` are those of the kernel that change. */
  | { do: "fork"; options: Record<string, string>; arguments?: Record<string, string>; target: string }
  /** Inputs are given where their elements decide the time. */
  | ({ do: "estimate"; variant: string; words?: string } & Partial<Inputs>)
  | ({ do: "trace"; core: string } & Partial<Inputs>)
  | ({ do: "costs" } & Partial<Inputs>)
  /** What would be faster. */
  | { do: "advice"; variant: string }
  /** The lane for an architecture; for the first that there is, if it is empty. */
  | { do: "gpu"; variant: string; arch: string }
  /** The module of a tab. */
  | { do: "module"; name: "gpu" | "whatif" }
  /** `unused` are variants that edits gave and no page shows any more; `launch` is the one of several that is lowered. */
  | { do: "edit"; text: string; unused: string[]; launch: number }
  /** All that goes on but edits, or the edit with this id. */
  | { do: "cancel"; edit?: string }
  /** What has not been answered when a lost connection is back. */
  | { do: "waiting"; ids: string[] };

/** What Python says to each kind of question. `buffer` is what was sent beside it. */
export interface Answers {
  run: { html: string; passed: boolean | null };
  check: { results: CheckedStep[]; first_bad: string | null };
  record: { buffer: Bytes };
  tile: TileHistory;
  /** For each step, and each part of one, whether it does something else; and the names of the files that differ. */
  fork: { variant: string; buffer: Bytes; steps: StepChange[]; files: string[] };
  /** For each line of the kernel before, the line that it has become, -1 for none; why the lowering failed on the way. */
  edit: { variant: string; buffer: Bytes; moved: number[]; error: Failure | null };
  estimate: { estimate: Estimate };
  trace: { trace: CoreTrace };
  costs: { costs: Costs };
  advice: { advice: Advice[] };
  gpu: { gpu: Gpu };
  module: { module: string };
  cancel: object;
  waiting: object;
}

/** What Python says, each with the `id` of its question. */
export type Message =
  | { id: string; state: "progress"; text: string }
  | { id: string; state: "failed"; error: Failure }
  | ({ id: string; state: "done" } & Partial<Answers[Question["do"]]>);
