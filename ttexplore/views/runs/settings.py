"""What each option of a lowering is set to, who set it, and where it cannot have an effect."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ttexplore.characters import Printed
from ttexplore.options import FAST_FUNCTIONS, OPTIONS, option_text
from ttexplore.plan import Plan
from ttexplore.record import StepRecord, Trace
from ttexplore.views.markup import content_id, escape, visible
from ttexplore.views.theme import fragment

_WIDTH = 80
_OWN_ORDER = ("block_linear", "z_order")
# A quotient is written as such.
_FAST_FUNCTIONS = re.compile(rf"T\.({'|'.join(FAST_FUNCTIONS)})\(| / ")
_WORK_ON_ELEMENTS = re.compile(r"T\.(Parallel|\w*reduce|cum|any_of|all_of|atomic)")


@dataclass(frozen=True, slots=True)
class OptionSetting:
    """An option of one lowering. `value` is what it is set to, as text, empty where the pass chooses; `by` is who set
    it: ``option``, an annotation with its line, another option, or ``default``. `idle` says why no value of the option
    changes the programs and the C++ of this lowering; empty where one may."""

    step: str
    name: str
    value: str
    default: str
    by: str
    meaning: str
    idle: str = ""

    @property
    def sentence(self) -> str:
        """What the option is, its default, and why it has no effect, if so."""
        idle = f" {self.idle}." if self.idle else ""
        return f"{self.meaning[:1].upper()}{self.meaning[1:]}. Default: {self.default}.{idle}"


class Settings(Printed, tuple[OptionSetting, ...]):
    """The options of a lowering in the order of the steps; text in a terminal, a table in a notebook."""

    def __str__(self) -> str:
        lines: list[str] = []
        for setting in self:
            lines.append(
                f"{setting.step}  {setting.name:<17} {visible(setting.value) or '-':<14} {visible(setting.by)}"
            )
            lines += textwrap.wrap(setting.sentence, _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{name}</th>' for name in ("step", "option", "value", "set by", "meaning"))
        cells = ((setting.step, setting.name, setting.value, setting.by, setting.sentence) for setting in self)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        table = f'<table class="t facts" aria-label="options"><tr>{heads}</tr>{rows}</table>'
        return fragment(content_id("ttx-options", table), "options of the lowering", table)


def settings(trace: Trace, plan: Plan, chosen: Collection[str]) -> Settings:
    """The options of all steps that ran; `chosen` are the names of those that the user gave, as far as is known."""
    idle = idle_options(trace.steps, plan)
    rows: list[OptionSetting] = []
    for step in trace.steps:
        for name, value in step.options.items():
            option = OPTIONS.get(name)
            # Another version may have had other options.
            if option is not None:
                text = option_text(value)
                by = _set_by(name, text, option.default, step, plan, name in chosen)
                rows.append(
                    OptionSetting(step.letter, name, text, option.default, by, option.meaning, idle.get(name, ""))
                )
    return Settings(rows)


def _set_by(name: str, value: str, default: str, step: StepRecord, plan: Plan, chosen: bool) -> str:
    if name == "layouts":
        return _layouts_by(value, plan, chosen)
    by = plan.reason(name, given=chosen or value not in ("", default))
    if by != "default":
        return by
    policy = str(step.options.get("policy", "")).partition("(")[0].replace("-", "_")
    if name == "policy" and step.options.get("work_lists") is not None:
        return "work_lists"
    return f"policy {policy}" if name == "order" and policy in _OWN_ORDER else by


def _layouts_by(value: str, plan: Plan, chosen: bool) -> str:
    """Each tensor has a layout of its own, so several may have set them."""
    about = [annotation for annotation in plan.annotations if annotation.option == "layouts"]
    origins = [
        f"annotation at {annotation.origin}" if annotation.origin else "annotation"
        for annotation in about
        if annotation.taken
    ]
    asked = chosen or (bool(value) and not about)
    return ", ".join([*(["option"] if asked else []), *dict.fromkeys(origins)]) or "default"


def idle_options(steps: Iterable[StepRecord], plan: Plan) -> dict[str, str]:
    """Why some options cannot change the programs and the C++, whatever their value: only what the steps that ran
    prove."""
    by_letter = {step.letter: step for step in steps if step.error is None}
    none: dict[str, str] = {}
    rejected: dict[str, str] = {}
    if "B1" in by_letter:
        if all(buffer.producer == "compute" for buffer in plan.buffers):
            none["stages"] = "the reader fills no circular buffer"
        if not any(layout.memory == "l1" and layout.sharding is not None for layout in plan.layouts):
            rejected["match"] = rejected["mode"] = "no tensor is sharded in L1"
    if "C2" in by_letter:
        if not plan.products:
            rejected["chunk_k_tiles"] = "the kernel has no T.gemm"
        if len(plan.products) < 2:
            rejected["qk_chunk_tiles"] = "the kernel has no chained products"
        if not any(_WORK_ON_ELEMENTS.search(by_letter[letter].before.text) for letter in ("A2", "C2")):
            none["eltwise"] = "the kernel has no operation on elements"
        if not _FAST_FUNCTIONS.search(by_letter["C2"].before.text):
            none["sfpu"] = f"the kernel has none of {', '.join(FAST_FUNCTIONS)}"
    if "D5" in by_letter:
        step = by_letter["D5"]
        if "tt.matmul" not in step.before.text:
            none["subblock"] = "the kernel has no matrix product"
        if len(step.plan_before["buffers"]) == len(step.plan_after["buffers"]):
            none["accumulate"] = none["epilogue"] = "no partial sum leaves DST"
    return {name: f"No effect here: {why}" for name, why in none.items()} | {
        name: f"Other values are rejected here: {why}" for name, why in rejected.items()
    }
