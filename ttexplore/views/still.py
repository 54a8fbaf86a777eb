"""What a notebook keeps of a live explorer: its place, and below it the page for readers whom no kernel answers.

A front end shows one form only of each output, and of a widget without its kernel an error. So these are two outputs,
and a style decides which of them is seen.
"""

from __future__ import annotations

# Stands for the explorer wherever widgets are unknown.
PLACE = "<!-- The explorer; where no kernel holds it, the page below is seen. -->"

_DEAD = "The live explorer is not running: rerun the cell to use it."
# One output of a cell: in JupyterLab, in Notebook and in what nbconvert makes; in VS Code.
_LAB, _CODE = ".jp-OutputArea-child", ".output_container"
_ABOVE = f"{_LAB}:has(+{_LAB}>*>.ttx-still)"
_STYLE = f"""<style>
{_LAB}:has(.ttx-explorer)+{_LAB}:has(>*>.ttx-still),{_CODE}:has(.ttx-explorer)+{_CODE} .ttx-still{{display:none}}
{_ABOVE}>:empty{{padding:0}}
{_ABOVE}>.jupyter-widgets:not(:has(*)){{visibility:hidden;font-size:0}}
{_ABOVE}>.jupyter-widgets:not(:has(*))::after{{content:"{_DEAD}";visibility:visible;\
font:13px/1.45 var(--jp-ui-font-family);color:var(--jp-content-font-color2)}}
{_LAB}:has(>.lm-Panel:not(.jupyter-widgets))+{_LAB}>*>.ttx-still{{animation:ttx-still 2s step-end}}
@keyframes ttx-still{{from{{max-height:0;overflow:hidden}}}}
</style>"""


def still_html(page: str) -> str:
    """`page`, an HTML fragment, as the output right below that of an explorer.

    Where the explorer is, this is hidden. Where it is not, JupyterLab's error becomes a sentence. As long as it may
    come, the page waits, though for 2 s at most: nothing jumps, and nothing is missing.
    """
    return f'<div class="ttx-still">{_STYLE}{page}</div>\n'
