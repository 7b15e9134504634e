"""The scratch copy of the tree, built once, and programs made of it with one file changed.

A mutant never touches the copy: its file is compiled apart, and the object is linked before the libraries, so that the
linker takes it instead of theirs. So any number of mutants can be tried at once, and nothing has to be restored.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Set, Tuple

# Modules without mutants: sockets, processes, printing and drawing. The others decide, decode or store.
_OTHER_MODULES = {"cli", "experiment", "fit", "launch", "net", "node", "python", "tasks", "view", "web"}
# Planted bugs test the code that checks other code (docs/reliability.md).
_CHECKERS = re.compile(r"(hunt|referee)\w*\.(cc|h)$")
# Tests of several modules, tried if the module's own tests miss a mutant.
SECOND_TESTS = (("cluster_test", ()), ("sim_test", ("--gtest_filter=*Hunt*",)))


class BuildError(Exception):
    """The tree does not build, or is not built as expected."""


@dataclass(frozen=True)
class Compilation:
    object: str  # from the build folder
    file: str  # from the root of the tree
    words: Tuple[str, ...]  # of the command


@dataclass
class Module:
    name: str
    folder: str  # such as src/core
    test: str  # such as core_test
    files: List[str] = field(default_factory=list)  # sources and headers, without tests


@dataclass(frozen=True)
class Link:
    words: Tuple[str, ...]
    objects: Tuple[str, ...]
    libraries: Tuple[str, ...]  # libraries of the tree


class Tree:
    """A copy of a working tree, with a build folder of its own."""

    def __init__(self, source: Path, scratch: Path, preset: str = "dev") -> None:
        self.source = source
        self.root = scratch / "tree"
        self.preset = preset
        self.build = self.root / "build" / preset
        self._compilations: List[Compilation] = []
        self._depends_on: Dict[str, Set[str]] = {}  # object -> files of the tree
        self._links: Dict[str, Link] = {}

    def copy(self) -> None:
        """Makes the copy equal to the source, except for build outputs. Equal files keep their modification time."""
        names = _files_of(self.source)
        for name in names:
            before, copied = self.source / name, self.root / name
            if not copied.exists() or copied.read_bytes() != before.read_bytes():
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(before, copied)
            copied.chmod(before.stat().st_mode)
        for old in [each for each in self.root.rglob("*") if each.is_file() and self.build.parent not in each.parents]:
            if str(old.relative_to(self.root)) not in names:
                old.unlink()

    def configure(self) -> None:
        if not (self.build / "build.ninja").exists():
            _run(["cmake", "--preset", self.preset, "-Wno-dev", "-DDROVER_TORCH=OFF"], self.root)
        else:
            _run(["ninja", "-C", str(self.build), "build.ninja"], self.root)
        self._compilations = compilations_of(json.loads((self.build / "compile_commands.json").read_text()), self.root)

    def modules(self) -> List[Module]:
        return modules_of(self._compilations)

    def make(self, targets: Sequence[str], jobs: int) -> None:
        _run(["ninja", "-C", str(self.build), "-j", str(jobs), *targets], self.root)
        for target in targets:
            self._links[target] = link_of(self._ask_ninja("commands", target), target)
        self._depends_on = dependencies_of(self._ask_ninja("deps"), self.build, self.root)

    def _ask_ninja(self, *words: str) -> str:
        return _output(["ninja", "-C", str(self.build), "-t", *words], self.root)

    def add_headers(self, module: Module) -> None:
        """Adds the files in the module's folder that its library is built from."""
        for each in self._compilations:
            if each.file in module.files:
                headers = (file for file in self._depends_on.get(each.object, ()) if file.endswith(".h"))
                module.files.extend(h for h in headers if h.startswith(module.folder + "/") and h not in module.files)
        module.files = sorted(file for file in module.files if not _CHECKERS.search(file))

    def program(self, target: str) -> Path:
        return self.build / "bin" / target

    def digest(self, target: str) -> str:
        return hashlib.sha256(self.program(target).read_bytes()).hexdigest()

    def uses(self, target: str, module: Module) -> bool:
        return any(library.startswith(module.folder + "/") for library in self._links[target].libraries)

    def make_mutated(self, target: str, file: str, text: str, folder: Path) -> Optional[Path]:
        """Builds the program `target` in `folder`, with `text` in place of a file. None if it does not compile."""
        return self.make_changed(target, {file: text}, folder)

    def make_changed(self, target: str, texts: Dict[str, str], folder: Path) -> Optional[Path]:
        """As make_mutated(), with several files under src changed together."""
        overlay = folder / "src"
        shutil.rmtree(folder, ignore_errors=True)
        overlay.mkdir(parents=True)
        changed: Dict[str, Path] = {}
        for file, text in texts.items():
            changed[file] = overlay / Path(file).relative_to("src")
            changed[file].parent.mkdir(parents=True, exist_ok=True)
            changed[file].write_text(text)
        replaced: Dict[str, str] = {}
        for each in {each.object: each for file in texts for each in self._rebuilt(target, file)}.values():
            made = str(folder / each.object.replace("/", "_"))
            if not self._compile(each, made, overlay, changed.get(each.file)):
                return None
            replaced[each.object] = made
        program = program_in(folder, target)
        words = linking(self._links[target], replaced, str(program))
        linked = subprocess.run(words, cwd=self.build, capture_output=True)
        return program if linked.returncode == 0 else None

    def _rebuilt(self, target: str, file: str) -> List[Compilation]:
        link = self._links[target]
        folders = tuple(os.path.dirname(library) + "/" for library in link.libraries)
        return [
            each
            for each in self._compilations
            if (each.object in link.objects or (each.object.startswith(folders) and not is_test(each)))
            and (each.file == file or file in self._depends_on.get(each.object, ()))
        ]

    def _compile(self, each: Compilation, made: str, overlay: Path, changed: Optional[Path]) -> bool:
        words = [each.words[0], f"-I{overlay}", *each.words[1:]]
        words[words.index("-o") + 1] = made
        if changed is not None:
            words[words.index("-c") + 1] = str(changed)
        # A mutated operator may need parentheses that the original did not.
        words.append("-Wno-parentheses")
        return subprocess.run(words, cwd=self.build, capture_output=True).returncode == 0


def program_in(folder: Path, target: str) -> Path:
    """The path of a program in a folder: in bin, as in every build, since some programs use files next to them."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    return folder / "bin" / target


def compilations_of(commands: Sequence[Dict[str, str]], root: Path) -> List[Compilation]:
    """The parts of compile_commands.json that are about files under src and tests."""
    found = []
    for command in commands:
        words = shlex.split(command["command"])
        file = os.path.relpath(command["file"], root)
        if not file.startswith(("..", "build/")):
            found.append(Compilation(words[words.index("-o") + 1], file, tuple(words)))
    return found


def is_test(compilation: Compilation) -> bool:
    return compilation.object.split("/CMakeFiles/")[-1].split("/")[0].endswith("_test.dir")


def modules_of(compilations: Sequence[Compilation]) -> List[Module]:
    """Folders under src with a library and a program of tests, X and X_test."""
    modules: Dict[str, Module] = {}
    for each in compilations:
        folder, _, rest = each.object.partition("/CMakeFiles/")
        target = rest.split(".dir/")[0]
        name = os.path.basename(folder)
        if folder.startswith("src/") and target == f"{name}_test" and name not in _OTHER_MODULES:
            modules[folder] = Module(name, folder, target)
    for each in compilations:
        folder = each.object.partition("/CMakeFiles/")[0]
        if folder in modules and not is_test(each) and each.file not in modules[folder].files:
            modules[folder].files.append(each.file)
    return sorted((each for each in modules.values() if each.files), key=lambda each: each.name)


def link_of(commands: str, target: str) -> Link:
    """The command among `ninja -t commands` that links the target."""
    for line in reversed(commands.splitlines()):
        for part in line.split(" && "):
            words = shlex.split(part) if f" -o bin/{target} " in part else []
            if words:
                objects = tuple(word for word in words if word.endswith(".o"))
                libraries = tuple(word for word in words if word.endswith(".a") and not word.startswith("/"))
                return Link(tuple(words), objects, libraries)
    raise BuildError(f"no command of the build links {target}")


def linking(link: Link, replaced: Dict[str, str], program: str) -> List[str]:
    """The command that links `program` with other objects: in place of the test's own, before those in libraries."""
    words = [replaced.get(word, word) for word in link.words]
    words[words.index("-o") + 1] = program
    first = link.words.index(link.objects[0])
    return words[:first] + [made for each, made in replaced.items() if each not in link.objects] + words[first:]


def dependencies_of(listing: str, build: Path, root: Path) -> Dict[str, Set[str]]:
    """`ninja -t deps` as a map from objects to the files of the tree that they were made of."""
    found: Dict[str, Set[str]] = {}
    current: Set[str] = set()
    for line in listing.splitlines():
        if line and not line.startswith(" "):
            current = found.setdefault(line.partition(":")[0], set())
        elif line:
            path = os.path.relpath(os.path.join(build, line.strip()), root)
            if not path.startswith(("..", "build/")):
                current.add(path)
    return found


def _files_of(source: Path) -> Set[str]:
    """The files that git lists in a working tree; without git, all files that are neither built nor hidden."""
    words = ["git", "ls-files", "-coz", "--exclude-standard"]
    try:
        listed = _output(words, source).split("\0") if (source / ".git").exists() else None
    except (OSError, subprocess.CalledProcessError):
        listed = None
    if listed is not None:
        return {name for name in listed if name and (source / name).is_file()}
    files = (each.relative_to(source) for each in source.rglob("*") if each.is_file())
    return {str(each) for each in files if each.parts[0] != "build" and not each.parts[0].startswith(".")}


def _output(words: Sequence[str], folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout


def _run(words: Sequence[str], folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(words)} failed:\n{done.stdout[-4000:]}")
