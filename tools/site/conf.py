"""The documentation as a site, made by Sphinx: `make docs` builds it into build/site, and a broken link is an error.

The pages are the Markdown files of the checkout, as they are: what is a link there is a link here. Nothing is fetched
while it builds, and a page asks nobody but its own site for anything when it is read.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docutils import nodes
from sphinx.errors import SphinxError
from sphinx.transforms.post_transforms import SphinxPostTransform

from pi_session_mcp import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NAVIGATION: Final = {
    "Start": ("tutorial",),
    "Guides": (
        "guides/install",
        "guides/configure",
        "guides/register",
        "guides/delegate",
        "guides/extensions",
        "guides/external-tools",
        "guides/upgrade",
        "guides/remove",
        "guides/troubleshoot",
    ),
    "Reference": (
        "tools",
        "configuration",
        "errors",
        "limits",
        "commands",
        "doctor",
        "setup",
        "runtime",
        "extensions",
        "external-mcp",
        "host-protocol",
    ),
    "Explanation": ("architecture", "threat-model", "scope", "performance", "adr/index"),
    "Project": (
        "acceptance",
        "acceptance-record",
        "releasing",
        "/CONTRIBUTING",
        "/SECURITY",
        "/AGENTS",
        "/CHANGELOG",
        "/README",
    ),
}
"""The pages below docs/, in the order of the navigation; what begins with a slash stands beside docs/."""

_SITE: Final = Path(__file__).parent
_ROOT: Final = _SITE.parents[1]
_DIAGRAMS: Final = _ROOT / "tools/js/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"

_FOREIGN: Final = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?:https?:)?//')

project = "pi-session-mcp"
release = version = __version__
root_doc = "docs/index"
extensions = ["myst_parser", "sphinx_copybutton"]
include_patterns = ["*.md", "docs/**"]
exclude_patterns = [".*", "build", "dist", "**/__pycache__", "**/node_modules", "acceptance", "benchmarks", "tests"]
exclude_patterns += ["completions", "pi_session_mcp", "tools"]
nitpicky = True
# A reader wants the example as it is, and an example may leave something out.
suppress_warnings = ["misc.highlighting_failure"]
myst_heading_anchors = 6

html_theme = "furo"
html_title = "pi-session-mcp"
html_static_path = [str(_SITE / "static"), *([str(_DIAGRAMS)] if _DIAGRAMS.exists() else [])]
html_css_files = ["site.css"]
html_js_files = [(name, {"defer": "defer"}) for name in ([_DIAGRAMS.name] if _DIAGRAMS.exists() else []) + ["site.js"]]
html_additional_pages = {"index": "start.html"}
copybutton_exclude = ".linenos, .gp, .go"
templates_path = [str(_SITE / "templates")]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


class Diagrams(SphinxPostTransform):
    """Leaves diagrams to the script that is part of the site; without it their text is shown, which reads well."""

    default_priority = 400

    def run(self, **_: object) -> None:
        """Replace each block of Mermaid in the page."""
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language") == "mermaid":
                block.replace_self(nodes.raw("", f'<pre class="mermaid">{escape(block.astext())}</pre>', format="html"))


def add_navigation(_: Sphinx, docname: str, source: list[str]) -> None:
    """Append the navigation to the first page, and to that of the decisions: their files stay plain Markdown."""
    if docname == "docs/adr/index":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```\n"
    if docname != root_doc:
        return
    for caption, pages in NAVIGATION.items():
        entries = "\n".join(page for page in pages if (_ROOT / "docs" / f"./{page}.md").exists() or page[0] == "/")
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"


def refuse_foreign_hosts(app: Sphinx, failed: Exception | None) -> None:
    """Raise if a page would load something from elsewhere when it is read; links to click on are fine."""
    if failed is None:
        for page in sorted(Path(app.outdir).rglob("*.html")):
            if _FOREIGN.search(page.read_text(encoding="utf-8")):
                message = f"{page.name} loads something from another host"
                raise SphinxError(message)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_post_transform(Diagrams)
    app.connect("source-read", add_navigation)
    app.connect("build-finished", refuse_foreign_hosts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
