"""Merge the user's options with the annotations of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ttexplore.errors import UsageError
from ttexplore.language.api.annotations import Annotation
from ttexplore.layout_request import LayoutRequest, layout_request
from ttexplore.plan import KernelAnnotation


def with_annotations(
    annotations: Iterable[Annotation], options: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[KernelAnnotation, ...]]:
    """The options, completed by the kernel's annotations, and a record of which annotations took effect.

    Options win. A policy, an order or work lists among the options replace all annotations of the kernel's schedule
    that they conflict with. Raises UsageError, at the line of the second annotation, if two annotations contradict.
    """
    given_layouts = dict(options.get("layouts") or {})
    replaced = {
        name for name, conflicting in _REPLACES.items() if options.get(name) is not None for name in conflicting
    }
    annotated: dict[str, object] = {}
    layouts: dict[str, LayoutRequest] = {}
    told: list[KernelAnnotation] = []
    for annotation in annotations:
        takes_effect = annotation.option not in options and annotation.option not in replaced
        if isinstance(annotation.value, LayoutRequest):
            takes_effect = annotation.tensor not in given_layouts
            layouts[annotation.tensor] = layouts.get(annotation.tensor, LayoutRequest()).merged(annotation.value)
        elif takes_effect and annotated.setdefault(annotation.option, annotation.value) != annotation.value:
            raise UsageError(
                "U010",
                f"the kernel asks for {annotation.option} {annotated[annotation.option]!r} and {annotation.value!r}",
                hint="keep one of the two annotations",
                span=annotation.span,
            )
        told.append(
            KernelAnnotation(
                annotation.option, _shown(annotation.value), annotation.tensor, annotation.span, takes_effect
            )
        )
    merged = annotated | dict(options)
    if layouts:
        asked = {name: layout_request(name, value) for name, value in given_layouts.items()}
        merged["layouts"] = {**layouts, **{n: layouts.get(n, LayoutRequest()).merged(a) for n, a in asked.items()}}
    return merged, tuple(told)


# The annotations of the schedule that an option of the user replaces.
_SCHEDULE = ("policy", "order", "rectangle", "stride", "match")
_REPLACES: dict[str, tuple[str, ...]] = {"policy": _SCHEDULE, "work_lists": _SCHEDULE, "order": ("policy", "order")}


def _shown(value: object) -> str:
    if not isinstance(value, LayoutRequest):
        return str(value)
    default = vars(LayoutRequest())
    return ", ".join(
        f"{name} {setting}" for name, setting in vars(value).items() if name != "span" and setting != default[name]
    )
