// Draws the diagrams in the colours of the page, and draws them anew when the reader changes these.
// Each keeps its natural size: on a narrow screen it scrolls instead of shrinking until nobody can read it.

const natural = { useMaxWidth: false };
const shapes = { flowchart: natural, sequence: natural, state: natural };
const diagrams = [...document.querySelectorAll("pre.mermaid")].map((node) => ({ node, text: node.textContent }));
const preference = matchMedia("(prefers-color-scheme: dark)");
let drawn;

function isDark() {
  const chosen = document.body.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && preference.matches);
}

async function draw() {
  const theme = isDark() ? "dark" : "default";
  if (theme === drawn) return;
  drawn = theme;
  mermaid.initialize({ startOnLoad: false, theme, ...shapes });
  for (const { node, text } of diagrams) {
    node.textContent = text;
    node.removeAttribute("data-processed");
  }
  await mermaid.run({ nodes: diagrams.map(({ node }) => node) });
}

// Without the script that draws, the text of a diagram stays, which reads well.
if (typeof mermaid !== "undefined" && diagrams.length > 0) {
  mermaid.initialize({ startOnLoad: false });
  addEventListener("DOMContentLoaded", draw);
  preference.addEventListener("change", draw);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
}
