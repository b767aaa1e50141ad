"""The project's scripts, alone: each copied into an empty project whose tools and compilers are stand-ins."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/usr/bin/env bash\nset -eu\n" + text)
    path.chmod(0o755)


def copied(name, to):
    (to / name).parent.mkdir(parents=True, exist_ok=True)
    return shutil.copy2(ROOT / name, to / name)


def run(*command, path=None, **options):
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]}
    return subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, **options)


def test_dev_refuses_a_task_it_does_not_know():
    done = run(ROOT / "dev", "tset")
    assert (done.returncode, done.stdout) == (2, "")
    assert "./dev TASK" in done.stderr


def test_the_version_of_mlx_is_written_once():
    version = (ROOT / "mlx_version").read_text().strip()
    listed = run("git", "ls-files", "--", "*.sh", "*.cmake", "*CMakeLists.txt", "src", "dev", "tandem", cwd=ROOT).stdout
    holders = [f for f in listed.split() if (ROOT / f).is_file() and version.encode() in (ROOT / f).read_bytes()]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version) and listed
    assert holders == []


def test_dev_explains_itself_when_asked():
    for arguments in ([], ["help"]):
        done = run(ROOT / "dev", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert "./dev TASK" in done.stdout


def test_the_benchmark_names_its_rows_without_building_and_each_is_explained(tmp_path):
    shutil.copytree(ROOT / "bench", tmp_path / "bench")  # without tools/, which would build
    done = run(copied("dev", tmp_path), "bench", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    rows, *groups = done.stdout.splitlines()
    explained = set(re.findall("`([^`]+)`", (ROOT / "docs/benchmarks.md").read_text()))
    names = [*rows.removeprefix("rows:").split(), *(group.split(":")[0] for group in groups)]
    assert len(names) > 20
    assert [name for name in names if name not in explained] == []


def fuzz_project(folder, targets):
    for name in ("cmake", "clang++-19"):
        program(folder / "bin" / name, ":")
    program(folder / "bin" / "ninja", f"[[ $* != *'-t targets'* ]] || printf '{targets}'")
    return copied("tools/fuzz.sh", folder)


def test_fuzzing_without_a_target_fails(tmp_path):
    done = run(fuzz_project(tmp_path, "base_test: phony\\n"), "1", path=tmp_path / "bin")
    assert done.returncode != 0
    assert "no fuzz target" in done.stderr


def test_every_fuzz_target_runs(tmp_path):
    (tmp_path / "src").mkdir()
    for name in ("json_fuzz", "sse_fuzz"):
        program(tmp_path / "build/fuzz/bin" / name, f"echo ran {name}")
    script = fuzz_project(tmp_path, "json_fuzz: phony\\nsse_fuzz: phony\\n")
    done = run(script, "1", path=tmp_path / "bin")
    assert done.returncode == 0, done.stderr
    assert "ran json_fuzz" in done.stdout and "ran sse_fuzz" in done.stdout


def launch_project(folder, build):
    for name in ("bridge", "cmake", "src"):
        (folder / name).mkdir()
    for name in ("CMakeLists.txt", "CMakePresets.json", "mlx_version", "src/a.cpp"):
        (folder / name).touch()
    program(folder / "tools/bootstrap.sh", ":")
    program(folder / "tools/build.sh", f"echo built >&2\ncd {folder}\nmkdir -p build/release/bin\n{build}")
    program(folder / "build/release/bin/tandem", 'echo "ran $*"')
    return copied("tandem", folder)


def built(done):
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ran x\n"
    return "built" in done.stderr


def test_tandem_builds_once_and_again_when_a_source_changed(tmp_path):
    script = launch_project(tmp_path, ":")
    assert built(run(script, "x"))
    assert not built(run(script, "x"))
    (tmp_path / "src/b.cpp").touch()
    assert built(run(script, "x"))
    assert not built(run(script, "x"))


def test_a_source_saved_during_a_build_is_built_next_time(tmp_path):
    script = launch_project(tmp_path, "[[ -e saved ]] || { sleep 0.02; touch saved src/a.cpp; sleep 0.02; }")
    assert built(run(script, "x"))
    assert built(run(script, "x"))
    assert not built(run(script, "x"))


def test_a_failed_build_is_tried_again(tmp_path):
    script = launch_project(tmp_path, "[[ -e failed ]] || { touch failed; exit 1; }")
    assert run(script, "x").returncode != 0
    assert built(run(script, "x"))


LAYERS = """
[folders]
base = []
net = ["base"]
app = ["*"]
[mlx]
allowed = []
[boost]
allowed = ["net"]
[lines]
file = 3
"""


def layers_say(folder, files):
    script = copied("tools/check_layers.py", folder)
    (folder / "layers.toml").write_text(LAYERS)
    files = {"net/a.cpp": ["base/a.h", "boost/asio.hpp"], "app/a.cpp": ["net/a.h"], **files}
    for name, includes in files.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f'#include "{target}"\n' for target in includes))
    done = run(sys.executable, script)
    lines = done.stdout.splitlines()
    assert (done.returncode == 0) == (lines == ["layers: ok"])
    return lines


def test_layers_that_are_kept_are_fine(tmp_path):
    assert layers_say(tmp_path, {}) == ["layers: ok"]


def test_layers_name_what_is_not_allowed(tmp_path):
    found = layers_say(
        tmp_path, {"base/a.h": ["net/a.h"], "app/b.h": ["boost/asio.hpp"], "x/a.h": [], "app/c.h": "abcd"}
    )
    assert found == [
        "src/app/b.h: includes boost/asio.hpp, but only net may",
        "src/app/c.h: 4 lines, at most 3",
        "src/base/a.h: includes net/a.h, but layers.toml lets base see only nothing",
        "src/x/a.h: folder 'x' is not listed in layers.toml",
    ]


def test_layers_keep_the_headers_of_tests_out_of_the_product(tmp_path):
    of_tests = ["net/peer_test.h", "doctest/doctest.h"]
    found = layers_say(tmp_path, {"net/b.cpp": of_tests, "net/b_test.cpp": of_tests, "net/peer_test.h": of_tests[1:]})
    assert found == [
        f"src/net/b.cpp: includes {target}, which is for files named …_test, …_fuzz or …_bench" for target in of_tests
    ]


def test_layers_name_what_is_allowed_and_not_used(tmp_path):
    assert layers_say(tmp_path, {"net/a.cpp": ["net/a.h"]}) == [
        "layers.toml: lets net see base, which no file of it includes",
        "layers.toml: lets net see boost, which no file of it includes",
    ]


def test_tandem_with_mlx_is_found_out(tmp_path):
    program(tmp_path / "ldd", "echo libc.so.6; [[ $1 != *rank && $1 != *bad ]] || echo libmlx.so")
    check = ROOT / "tests/no_libmlx.sh"
    assert run(check, "tandem", "tandem-rank", path=tmp_path).returncode == 0
    assert run(check, "tandem-bad", "tandem-rank", path=tmp_path).returncode != 0
    assert run(check, "tandem", "tandem", path=tmp_path).returncode != 0
    program(tmp_path / "ldd", "exit 1")
    assert run(check, "tandem", "tandem-rank", path=tmp_path).returncode != 0
