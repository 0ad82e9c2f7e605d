"""The files that are taken for a package's extensions are those that the real Pi SDK finds in it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from pi_session_mcp.extensions.outcomes import Condition
from pi_session_mcp.extensions.resolve import Place, judge
from pi_session_mcp.terms.pin import Pin
from tests.support.environment import ensure_installed
from tests.support.extensions import package_directory

if TYPE_CHECKING:
    from pathlib import Path

ASK: Final = """
const [entry, agentDir, ...names] = process.argv.slice(1);
const sdk = await import(entry);
const settingsManager = sdk.SettingsManager.inMemory({}, { projectTrusted: false });
const options = { cwd: "/", agentDir, settingsManager };
const packages = new sdk.DefaultPackageManager(options);
const none = { noExtensions: true, noSkills: true, noPromptTemplates: true, noThemes: true };
const found = {};
for (const name of names) {
  const root = `${agentDir}/npm/node_modules/${name}`;
  const { extensions } = await packages.resolveExtensionSources([`npm:${name}@1.0.0`]);
  const files = extensions.filter(({ enabled }) => enabled).map(({ path }) => path.slice(root.length + 1));
  const directory = { ...options, agentDir: "/dev/null/none", ...none, additionalExtensionPaths: [root] };
  const loader = new sdk.DefaultResourceLoader(directory);
  if (files.length === 0) await loader.reload();
  const loaded = files.length === 0 ? loader.getExtensions().extensions : [];
  found[name] = { files, index: loaded.flatMap(({ commands }) => [...commands.keys()]) };
}
console.log(JSON.stringify(found));
"""
"""Asks the SDK for an installed package's extensions, and where it finds none, what it loads from the directory."""

BROKEN, UNSUPPORTED, NONE = Condition.BROKEN, Condition.FORM_UNSUPPORTED, Condition.NO_EXTENSION


def tree(*files: str, pi: Any = None, links: dict[str, str] | None = None, texts: Any = None) -> dict[str, Any]:
    """A package: files that are extensions, `pi` of its manifest, links, and files with other content."""
    return {"files": files, "pi": pi, "links": links or {}, "texts": texts or {}}


def listing(*entries: str) -> dict[str, Any]:
    return {"extensions": list(entries)}


SRC = ("src/a.ts", "src/b.js", "src/c.cjs", "src/.hidden.ts", "src/deep/index.ts", "src/deep/other.ts", "src/bare/x.ts")

AS_PI: Final = {
    "literal": tree("index.ts", "lib/a.cjs", pi=listing("./lib/a.cjs", "index.ts")),
    "pattern-that-matches-nothing": tree("index.ts", pi=listing("index.ts", "lib/*.ts")),
    "folder-without-extensions": tree("index.ts", "lib/x.md", pi=listing("index.ts", "lib")),
    "twice": tree("index.ts", pi=listing("./index.ts", "index.ts")),
    "brackets-in-a-name": tree("[a].ts", "{b}.ts", pi=listing("[a].ts", "{b}.ts")),
    "folder": tree(*SRC, pi=listing("./src")),
    "folder-with-slash": tree(*SRC, pi=listing("src/")),
    "folder-with-index": tree("src/index.ts", "src/index.js", "src/a.ts", pi=listing("src")),
    "folder-with-manifest": tree(
        "src/x/a.ts",
        "src/x/index.ts",
        pi=listing("src"),
        texts={"src/x/package.json": '{"pi":{"extensions":["./a.ts"]}}'},
    ),
    "folder-whose-manifest-is-broken": tree("src/x/index.js", pi=listing("src"), texts={"src/x/package.json": "{"}),
    "folder-whose-manifest-lists-nothing-that-is-there": tree(
        "src/x/index.js", pi=listing("src"), texts={"src/x/package.json": '{"pi":{"extensions":["./a.ts"]}}'}
    ),
    "folder-with-modules": tree("src/node_modules/q/index.ts", "src/a.ts", pi=listing("src")),
    "folder-with-comments-only-in-ignore": tree("src/a.ts", pi=listing("src"), texts={"src/.ignore": "# nothing\n\n"}),
    "folder-with-links": tree(
        "real/a.ts",
        "real/index.ts",
        "src/b.ts",
        pi=listing("src"),
        links={"src/a.ts": "../real/a.ts", "src/d": "../real", "src/gone.ts": "nowhere"},
    ),
    "star": tree(*SRC, "src/z.md", pi=listing("src/*.ts")),
    "star-of-folders": tree(*SRC, pi=listing("src/*")),
    "star-in-a-folder": tree(*SRC, pi=listing("src/*/index.ts")),
    "question-mark": tree(*SRC, pi=listing("./src/?.ts")),
    "any-depth": tree(*SRC, "node_modules/q/index.ts", pi=listing("**/*.ts")),
    "any-depth-below": tree(*SRC, pi=listing("src/**/*.ts")),
    "any-depth-last": tree(*SRC, pi=listing("src/**")),
    "any-depth-of-a-file": tree("a.ts", "src/b.ts", pi=listing("a.ts/**", "*/b.ts/**/**")),
    "any-depth-of-no-file": tree("a.ts", "src/b.ts", "src/c.ts", pi=listing("*/**", "*.ts/**", "**/a.ts/**", "a.ts/*")),
    "any-depth-alone": tree("ä.ts", "lib/x.ts", "lib/b/y.cjs", pi=listing("**", "!package.json")),
    "any-depth-alone-with-index": tree("index.js", "other.ts", "lib/x.ts", pi=listing("**")),
    "any-depth-of-folders": tree("other.ts", "lib/x.ts", "lib/b/y.ts", pi=listing("**/")),
    "star-with-slash": tree("src/a.ts", "src/b/c.ts", pi=listing("src/*/")),
    "any-depth-twice": tree(*SRC, pi=listing("**/deep/**/*.ts")),
    "any-depth-with-link": tree("real/a.ts", pi=listing("**/*.ts"), links={"linked": "real"}),
    "star-with-link": tree("real/a.ts", pi=listing("*/a.ts"), links={"linked": "real"}),
    "stars-in-a-row": tree("src/abc.ts", "src/acb.ts", pi=listing("src/a**c.ts")),
    "sorted": tree("src/b.ts", "src/B.ts", "src/a.ts", "src/ä.ts", pi=listing("src/*.ts")),
    "exclusion": tree(*SRC, pi=listing("src", "!src/a.ts")),
    "exclusion-by-name": tree(*SRC, pi=listing("src/**/*.ts", "!a.ts")),
    "exclusion-by-pattern": tree(*SRC, pi=listing("src/**/*.ts", "!**/deep/*")),
    "exclusion-of-a-folder": tree(*SRC, pi=listing("src/**/*.ts", "!src/deep/**")),
    "exclusion-of-a-folder-by-any-depth-twice": tree("src/a.ts", "b.ts", pi=listing("src", "b.ts", "!src/**/**")),
    "exclusion-with-dot": tree(*SRC, pi=listing("src", "!./src/a.ts")),
    "exclusion-by-whole-path": tree(*SRC, pi=listing("src", "!**/npm/**/a.ts")),
    "exclusion-of-one-level": tree(*SRC, pi=listing("src/**/*.ts", "!*/*.ts")),
    "given-back": tree(*SRC, pi=listing("src", "!src/*", "+src/a.ts", "+./src/b.js")),
    "taken": tree(*SRC, pi=listing("src", "-src/a.ts", "-./src/b.js")),
    "taken-after-given-back": tree(*SRC, pi=listing("src", "+src/a.ts", "-src/a.ts")),
    "conventional": tree("extensions/a.ts", "extensions/b/index.js", "extensions/c/d.ts", "other.ts"),
    "conventional-with-index": tree("extensions/index.js", "extensions/b.ts"),
    "conventional-with-metadata": tree("extensions/a.ts", pi={"image": "x.png", "changelogPath": ""}),
    "conventional-with-pi-that-is-a-list": tree("extensions/a.ts", pi=["x"]),
    "conventional-with-skills-that-are-no-list": tree("extensions/a.ts", pi={"skills": "./skills"}),
    "conventional-beside-skills": tree("extensions/a.ts", texts={"skills/s/SKILL.md": "---\nname: s\n---\n"}),
}
"""Packages of which the same is taken as by the SDK."""

INDEX: Final = {
    "index-ts": tree("index.ts", "other.ts"),
    "index-js-and-ts": tree("index.js", "index.ts"),
    "index-mjs-and-ts": tree("index.mjs", "index.ts"),
    "index-cjs": tree("index.cjs"),
    "index-mts-and-ts": tree("index.mts", "index.ts"),
}
"""Packages without any of Pi's folders, of which the SDK loads the index file when it is given their directory."""

NOTHING: Final = {
    "skills-only": tree("index.ts", pi={"skills": ["./skills"]}),
    "skills-folder": tree("index.ts", texts={"skills/s/SKILL.md": "---\nname: s\n---\n"}),
    "empty-list": tree("index.ts", pi=listing()),
    "only-overrides": tree("index.ts", pi=listing("!index.ts", "+index.ts")),
    "all-excluded": tree("index.ts", pi=listing("index.ts", "!index.ts")),
    "all-excluded-by-any-depth-twice": tree("index.ts", "lib/a.ts", pi=listing("index.ts", "lib", "!**/**")),
    "only-a-pattern-that-matches-nothing": tree("index.ts", pi=listing("lib/*.ts")),
    "empty-folder": tree("extensions/notes.txt"),
}
"""Packages in which neither the SDK nor we find an extension."""

REFUSED: Final = {
    "absent": (tree("index.ts", pi=listing("./index.ts", "./gone.ts")), BROKEN),
    "no-text": (tree("index.ts", pi={"extensions": [7]}), BROKEN),
    "no-list": (tree("index.ts", pi={"extensions": "./index.ts"}), BROKEN),
    "braces": (tree("a.ts", "b.ts", pi=listing("{a,b}*.ts")), UNSUPPORTED),
    "class": (tree("a.ts", pi=listing("[ab]*.ts")), UNSUPPORTED),
    "alternatives": (tree("a.ts", pi=listing("*(a|b).ts")), UNSUPPORTED),
    "excluded-braces": (tree("a.ts", pi=listing("a.ts", "!{b,c}.ts")), UNSUPPORTED),
    "excluded-twice": (tree("a.ts", pi=listing("a.ts", "!!b.ts")), UNSUPPORTED),
    "excluded-home": (tree("a.ts", pi=listing("a.ts", "!~/x.ts")), UNSUPPORTED),
    "ignore-rules": (tree("src/a.ts", "src/b.ts", pi=listing("src"), texts={"src/.gitignore": "b.ts\n"}), UNSUPPORTED),
    "itself": (tree("index.ts", pi=listing(".")), UNSUPPORTED),
    "dot-in-a-pattern": (tree("src/a.ts", pi=listing("src/**/.")), UNSUPPORTED),
    "nothing-in-a-pattern": (tree("src/a.ts", pi=listing("src//*.ts")), UNSUPPORTED),
    "above": (tree("index.ts", pi=listing("../above/index.ts")), UNSUPPORTED),
    "above-by-pattern": (tree("index.ts", pi=listing("../*/index.ts")), UNSUPPORTED),
    "absolute": (tree("index.ts", pi=listing("/dev/null")), UNSUPPORTED),
    "link-out": (tree("a.ts", pi=listing("out.ts"), links={"out.ts": "../literal/index.ts"}), UNSUPPORTED),
    "link-out-in-folder": (
        tree("src/a.ts", pi=listing("src"), links={"src/out.ts": "../../literal/index.ts"}),
        UNSUPPORTED,
    ),
    "folder-out": (tree("a.ts", pi=listing("out"), links={"out": "../folder/src"}), UNSUPPORTED),
    "folder-out-by-pattern": (tree("a.ts", pi=listing("*/a.ts"), links={"out": "../folder/src"}), UNSUPPORTED),
    "conventional-out": (tree("a.ts", links={"extensions": "../folder/src"}), UNSUPPORTED),
    "folder-whose-manifest-leads-out": (
        tree(
            "src/x/index.js", pi=listing("src"), texts={"src/x/package.json": '{"pi":{"extensions":["../../../x.ts"]}}'}
        ),
        UNSUPPORTED,
    ),
}
"""Packages that are refused whatever the SDK makes of them, and how that is called."""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent directory with all of them."""
    agent: Path = tmp_path_factory.mktemp("forms") / "agent"
    for name, form in {**AS_PI, **INDEX, **NOTHING, **{name: form for name, (form, _) in REFUSED.items()}}.items():
        install(package_directory(agent, name), name, form)
    return agent


def install(directory: Path, name: str, form: dict[str, Any]) -> None:
    said = {"name": name, "version": "1.0.0", **({} if form["pi"] is None else {"pi": form["pi"]})}
    extension = "export default (pi) => pi.registerCommand('NAME', { description: '', handler: async () => {} });"
    commonjs = "module.exports = (pi) => pi.registerCommand('NAME', { description: '', handler: async () => {} });"
    sources = {path: (commonjs if path.endswith(".cjs") else extension).replace("NAME", path) for path in form["files"]}
    for path, text in {"package.json": json.dumps(said), **sources, **form["texts"]}.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    for path, target in form["links"].items():
        (directory / path).symlink_to(target)


@pytest.fixture(scope="module")
def of_pi(agent: Path) -> dict[str, Any]:
    """What the SDK finds: paths as it names them, or the index file that it loads from the directory."""
    runtime = ensure_installed()
    asked = [*AS_PI, *INDEX, *NOTHING]
    command = [str(runtime.node), "--input-type=module", "-e", ASK, "--", str(runtime.sdk_entry), str(agent), *asked]
    environment = {"PATH": os.environ["PATH"], "HOME": str(agent), "PI_OFFLINE": "1", "PI_CODING_AGENT_DIR": str(agent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def taken(agent: Path, name: str) -> list[str]:
    resolved = judge(Pin(name, "1.0.0"), Place(agent, ())).resolved
    assert resolved is not None
    return [str(entry.path.relative_to(resolved.directory)) for entry in resolved.entries]


def real(agent: Path, name: str, files: list[str]) -> list[str]:
    """The real paths, each once: Pi names a link by its own name."""
    directory = package_directory(agent, name).resolve()
    return list(dict.fromkeys(str((directory / file).resolve().relative_to(directory)) for file in files))


@pytest.mark.parametrize("name", AS_PI)
def test_what_pi_loads_of_an_installed_package_is_taken(agent: Path, of_pi: dict[str, Any], name: str) -> None:
    assert of_pi[name]["files"]
    assert taken(agent, name) == real(agent, name, of_pi[name]["files"])


@pytest.mark.parametrize("name", INDEX)
def test_of_a_package_without_pis_folders_the_index_file_is_taken(
    agent: Path, of_pi: dict[str, Any], name: str
) -> None:
    assert taken(agent, name) == of_pi[name]["index"] != []


@pytest.mark.parametrize("name", NOTHING)
def test_a_package_in_which_pi_finds_no_extension_has_none(agent: Path, of_pi: dict[str, Any], name: str) -> None:
    assert of_pi[name]["files"] == []
    assert judge(Pin(name, "1.0.0"), Place(agent, ())).condition is NONE


@pytest.mark.parametrize("name", REFUSED)
def test_what_leads_out_or_is_declared_and_not_there_or_of_another_form_is_refused_by_its_name(
    agent: Path, name: str
) -> None:
    judgement = judge(Pin(name, "1.0.0"), Place(agent, ()))

    assert (judgement.resolved, judgement.condition) == (None, REFUSED[name][1])
