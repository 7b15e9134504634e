"""Builds the wheel of drover with CMake: what `pip install .` calls (PEP 517).

It needs a C++ compiler, CMake, Ninja and the libraries that `tools/setup build` installs on Debian, and no network.
Without libtorch's headers the built-in models and `drover fit` are left out; PyTorch scripts do not need them.

DROVER_BUILD_DIR names a folder that was built already (`make build`): then nothing is compiled.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{platform}"
    with tempfile.TemporaryDirectory() as folder:
        staged = pathlib.Path(folder)
        _run("cmake", "--install", _built(), "--prefix", staged)
        if not list(staged.glob("python/drover/_native*.so")):
            raise SystemExit("drover was built without its Python module: Python's headers and pybind11 are needed "
                             "(on Debian: apt-get install python3-dev pybind11-dev)")
        name = f"drover-{version}-{tag}.whl"
        _zip(pathlib.Path(wheel_directory, name), staged, version, tag)
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = f"drover-{_version()}"
    _run("git", "-C", ROOT, "archive", "--format=tar.gz", f"--prefix={name}/", "-o",
         pathlib.Path(sdist_directory, f"{name}.tar.gz").resolve(), "HEAD")
    return f"{name}.tar.gz"


def _version():
    return re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]


def _built():
    """The folder of a finished build for this Python."""
    if ready := os.environ.get("DROVER_BUILD_DIR"):
        return pathlib.Path(ready)
    folder = ROOT / "build" / f"wheel-{sysconfig.get_config_var('SOABI')}"
    # As the release preset: what a compiler cache knows is not compiled again.
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-Wno-dev", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                 "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG", "-DDROVER_TESTS=OFF",
                 f"-DDROVER_PYTHON={sys.executable}"]
    try:
        _run(*configure)
    except subprocess.CalledProcessError:
        print("drover: configuring failed; trying again without libtorch", file=sys.stderr)
        _run(*configure, "-DDROVER_TORCH=OFF")
    _run("cmake", "--build", folder, "--parallel", os.cpu_count() or 1)
    return folder


def _run(*words):
    subprocess.run([str(word) for word in words], check=True)


def _zip(path, staged, version, tag):
    info = f"drover-{version}.dist-info"
    data = f"drover-{version}.data"
    records = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, content, executable=False):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{name},sha256={digest},{len(content)}\n")

        for file in sorted(staged.rglob("*")):
            if file.is_dir():
                continue
            where = file.relative_to(staged).as_posix()
            # pip puts scripts where commands are, and data under the environment's own folder.
            place = re.sub("^python/", "", where) if where.startswith("python/") else \
                re.sub("^bin/", f"{data}/scripts/", where) if where.startswith("bin/") else f"{data}/data/{where}"
            add(place, file.read_bytes(), executable=where.startswith("bin/"))
        add(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: drover\nVersion: {version}\n"
            "Summary: Distributed training that does not wait for slow machines\nRequires-Python: >=3.9\n".encode())
        add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: drover\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        wheel.writestr(f"{info}/RECORD", "".join(records) + f"{info}/RECORD,,\n")
