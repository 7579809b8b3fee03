"""What a file is by its path, as patterns of gitignore(5).

The first list with a match decides, and in it the last pattern that matches. What is in none is
code. A name that is missing here makes a change look larger than it is, and one pattern fixes that;
a name too many hides code. So there is no `build/`, `dist/` or `*.map` among what is generated, and
no `*.txt` (requirements.txt) or `*.json` among documentation.
"""

from __future__ import annotations

# Lock files, what is vendored, and what programs write.
GENERATED = """
*-lock.json *-lock.yaml *-lock.yml *.lock.yml *.lock.json *.lock.hcl *.lockfile *.lockb
yarn.lock bun.lock deno.lock poetry.lock uv.lock pdm.lock Pipfile.lock pixi.lock mise.lock
devbox.lock Cargo.lock Gemfile.lock Podfile.lock Chart.lock composer.lock mix.lock pubspec.lock
flake.lock conan.lock MODULE.bazel.lock stack.yaml.lock pylock.toml go.sum go.work.sum
npm-shrinkwrap.json gems.locked Package.resolved Cartfile.resolved packages.lock.json
project.assets.json cabal.project.freeze node_modules/ bower_components/ vendor/ vendored/
_vendor/ third_party/ third-party/ site-packages/ Pods/ .terraform/ /.yarn/cache/
/.yarn/releases/ /.yarn/plugins/ /.yarn/sdks/ .pnp.cjs .pnp.loader.mjs __generated__/
__pycache__/ *.min.js *.min.mjs *.min.css *.[jt]s.map *.[mc]js.map *.css.map *_pb2.py *_pb2.pyi
*_pb2_grpc.py *.pb.go *.pb.gw.go *.pb.cc *.pb.h *.pb.swift *.pb.dart *_pb.js *_pb.ts *.g.dart
*.freezed.dart *.g.cs *.[Dd]esigner.cs *_generated.go *.generated.[a-z]* zz_generated.*
**/__snapshots__/**/*.snap **/__snapshots__/**/*.ambr **/snapshots/**/*.snap
"""

TESTS = """
test/ tests/ __tests__/ __test__/ spec/ specs/ testdata/ test-data/ test_data/ __snapshots__/
__mocks__/ __fixtures__/ e2e/ cypress/ androidTest/ unitTest/ commonTest/ conftest.py tests.py
tests.rs test_*.py test_*.rb test_*.c test_*.cc test_*.cpp test_*.sh test_*.lua test-*.sh
test-*.py *_test.* *_tests.py *_spec.* *-test.sh *-test.bash *_unittest.* *_SUITE.erl *.test.*
*.spec.* *.cy.[jt]s *.e2e.[jt]s Test[A-Z]*.java Test[A-Z]*.kt Test[A-Z]*.cs *Test.java *Test.kt
*Test.cs *Test.php *Test.scala *Test.groovy *Test.swift *Tests.* *Spec.[a-z]* *TestCase.*
*IT.java *IT.kt *.snap *.bats *.feature *.golden
"""

# Prose, pictures, tables, translations; not the programs beside these.
DOCUMENTATION = """
docs/ doc/ documentation/ *.md *.mdx *.markdown *.rst *.adoc *.asciidoc *.textile *.org *.pdf
*.drawio *.puml *.mmd *.docx *.odt *.pptx *.xlsx *.svg *.png *.PNG *.jpg *.JPG *.jpeg *.gif
*.ico *.webp *.avif *.icns *.psd *.fig *.mp3 *.mp4 *.webm *.mov *.wav *.ogg *.woff *.woff2 *.ttf
*.otf *.csv *.tsv *.jsonl *.ndjson *.geojson *.parquet *.log *.po *.pot *.xliff LICENSE*
LICENCE* COPYING* NOTICE* README* readme.* CHANGELOG* CHANGES* HISTORY* NEWS* AUTHORS*
CONTRIBUTORS* MAINTAINERS* TODO* ROADMAP* CONTRIBUTING* CODE_OF_CONDUCT* SECURITY* SUPPORT*
GOVERNANCE* CITATION* !*.py !*.[jt]s !*.[mc][jt]s !*.[jt]sx !*.vue !*.svelte !*.go !*.rs !*.java
!*.kt !*.kts !*.scala !*.groovy !*.gradle !*.[cmhr] !*.cc !*.cpp !*.hpp !*.mm !*.swift !*.cs
!*.fs !*.vb !*.rb !*.php !*.pl !*.lua !*.sh !*.bash !*.zsh !*.fish !*.ps1 !*.bat !*.cmd !*.sql
!*.tf !*.ex !*.exs !*.erl !*.hs !*.ml !*.clj !*.dart !*.jl !*.zig !*.nix !*.el !*.mk !*.toml
!*.yml !*.yaml !*.ipynb !*.proto !Makefile !Dockerfile !Gemfile !Rakefile !package.json
"""
