"""What files are by their names: the built-in lists that the configuration is laid over.

Kept as sets and endings, and not as patterns: thousands of paths are told in a few milliseconds. A
name that is missing here makes a change look larger than it is, and one pattern mends that; a name
too many hides code. So there is no `build/`, `dist/`, `gen/` or `*.map` among what is left out, and
no plain `*.txt` (requirements.txt) or `*.json` among documentation.
"""

from __future__ import annotations

LOCK_NAMES = frozenset(
    {
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"),
        *("bun.lock", "bun.lockb", "deno.lock", "rush-lock.json"),
        *("poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock", "pixi.lock", "pylock.toml"),
        *("conda-lock.yml", "conda-lock.yaml"),
        *("Cargo.lock", "go.sum", "go.work.sum", "Gopkg.lock", "glide.lock"),
        *("Gemfile.lock", "gems.locked", "composer.lock", "symfony.lock", "mix.lock"),
        *("rebar.lock", "pubspec.lock", "Podfile.lock", "Cartfile.resolved", "Package.resolved"),
        *("packages.lock.json", "paket.lock", "project.assets.json", "gradle.lockfile"),
        *("buildscript-gradle.lockfile", "flake.lock", ".terraform.lock.hcl", "Chart.lock"),
        *("stack.yaml.lock", "cabal.project.freeze", "MODULE.bazel.lock", "maven_install.json"),
        *("dub.selections.json", "shard.lock", "spago.lock", "renv.lock", "packrat.lock"),
        *("lazy-lock.json", "devbox.lock", "mise.lock", "conan.lock", "vcpkg-lock.json"),
        *("devenv.lock", "Puppetfile.lock", "Berksfile.lock", "Brewfile.lock.json"),
    }
)

GENERATED_NAMES = frozenset({".pnp.cjs", ".pnp.loader.mjs"})
GENERATED_PREFIXES = ("zz_generated.",)
GENERATED_ENDINGS = (
    *(".min.js", ".min.mjs", ".min.css", ".js.map", ".mjs.map", ".cjs.map", ".ts.map", ".css.map"),
    *("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi", ".pb.go", ".pb.gw.go", ".pb.cc"),
    *(".pb.h", ".pb.swift", ".pb.dart", ".pbenum.dart", ".pbjson.dart", ".pbserver.dart"),
    *("_pb.js", "_pb.d.ts", "_pb.ts", "_grpc_web_pb.js", "_grpc_pb.js"),
    *(".g.dart", ".freezed.dart", ".gr.dart", ".g.cs", ".g.i.cs", ".designer.cs", ".Designer.cs"),
    *("_generated.go", ".generated.go", ".generated.ts", ".generated.js", ".generated.cs"),
)
VENDORED_FOLDERS = frozenset(
    {
        *("node_modules", "bower_components", "jspm_packages", "web_modules"),
        *("vendor", "vendored", "_vendor", "third_party", "third-party", "thirdparty", "3rdparty"),
        *("site-packages", "Pods", "elm-stuff", ".terraform", ".pnpm-store", "Godeps"),
    }
)
GENERATED_FOLDERS = frozenset({"__generated__", "__pycache__"})
# Above anything: what yarn commits to repositories.
VENDORED_STARTS = (".yarn/cache/", ".yarn/releases/", ".yarn/plugins/", ".yarn/sdks/")

TEST_FOLDERS = frozenset(
    {
        *("test", "tests", "__tests__", "__test__", "spec", "specs", "testdata", "test-data"),
        *("test_data", "__snapshots__", "__mocks__", "__fixtures__", "e2e", "cypress"),
        *("androidTest", "unitTest", "commonTest", "jvmTest", "integration-tests"),
    }
)
TEST_NAMES = frozenset({"conftest.py", "tests.py", "tests.rs"})
TEST_STARTS = ("test_",)
TEST_ENDINGS_AFTER_START = (".py", ".rb", ".c", ".cc", ".cpp", ".sh", ".lua", ".jl", ".ml", ".zig")
TEST_ENDINGS = (
    *[f"_test.{one}" for one in ("py", "go", "rb", "rs", "c", "cc", "cpp", "dart", "exs", "clj")],
    *[f"_test.{one}" for one in ("ts", "tsx", "js", "jsx", "sh", "lua", "ml", "erl", "zig")],
    *[f"_spec.{one}" for one in ("rb", "lua", "cr", "js", "ts")],
    *("_unittest.cc", "_unittest.cpp", "_unittest.py", "_SUITE.erl"),
    *[
        f".{word}.{one}"
        for word in ("test", "spec", "cy", "e2e")
        for one in ("ts", "tsx", "js", "jsx", "mts", "cts", "mjs", "cjs", "vue", "svelte")
    ],
    *[f"Test.{one}" for one in ("java", "kt", "cs", "php", "scala", "groovy", "swift")],
    *[f"Tests.{one}" for one in ("java", "kt", "cs", "swift", "fs")],
    *[f"Spec.{one}" for one in ("scala", "kt", "groovy", "swift", "hs")],
    *("IT.java", ".snap", ".bats", ".feature", ".golden"),
)

# Prose, pictures and sounds, fonts, tables, translations. Compared in lower case.
DOCUMENTATION_ENDINGS = (
    *(".md", ".mdx", ".markdown", ".rst", ".adoc", ".asciidoc", ".textile", ".rdoc", ".org"),
    *(".pdf", ".drawio", ".puml", ".plantuml", ".mmd", ".docx", ".odt", ".pptx", ".xlsx"),
    *(".svg", ".png", ".jpg", ".jpeg", ".gif", ".ico", ".webp", ".avif", ".bmp", ".tiff", ".icns"),
    *(".psd", ".sketch", ".fig"),
    *(".mp3", ".mp4", ".webm", ".mov", ".wav", ".ogg", ".flac"),
    *(".woff", ".woff2", ".ttf", ".otf", ".eot"),
    *(".csv", ".tsv", ".jsonl", ".ndjson", ".geojson", ".parquet", ".log"),
    *(".po", ".pot", ".xliff", ".xlf"),
)
# The part of a name before its first dot, in upper case.
DOCUMENTATION_STEMS = frozenset(
    {
        *("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "PATENTS", "UNLICENSE"),
        *("README", "CHANGELOG", "CHANGES", "HISTORY", "NEWS", "RELEASES", "UPGRADING"),
        *("AUTHORS", "CONTRIBUTORS", "MAINTAINERS", "THANKS", "TODO", "ROADMAP"),
        *("CONTRIBUTING", "CODE_OF_CONDUCT", "SECURITY", "SUPPORT", "GOVERNANCE"),
    }
)
DOCUMENTATION_STEM_ENDINGS = ("", ".txt", ".html", ".cff")
DOCUMENTATION_FOLDERS = frozenset({"docs", "doc", "documentation"})
# In those folders are programs, too: a site, an extension, an example that people copy.
CODE_ENDINGS = (
    *(".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte"),
    *(".go", ".rs", ".java", ".kt", ".kts", ".scala", ".groovy", ".gradle", ".c", ".cc", ".cpp"),
    *(".h", ".hh", ".hpp", ".m", ".mm", ".swift", ".cs", ".fs", ".vb", ".rb", ".php", ".pl"),
    *(".pm", ".lua", ".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd", ".sql", ".tf"),
    *(".ex", ".exs", ".erl", ".hs", ".ml", ".clj", ".dart", ".jl", ".r", ".zig", ".nix", ".el"),
    *(".mk", ".toml", ".yml", ".yaml", ".ipynb", ".proto"),
)
CODE_NAMES = frozenset({"Makefile", "Dockerfile", "Rakefile", "Gemfile", "package.json"})
