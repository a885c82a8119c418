"""Compile the kernel with the compiler that the package ``ziglang`` brings.

``ASSAY_BUILD_TARGET``, one of ``TARGETS``, compiles a wheel for another machine. What fails here fails this distribution alone.
"""

import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGETS = {
    "x86_64-linux-gnu.2.17": ("manylinux_2_17_x86_64", "libassay_kernel.so"),
    "aarch64-linux-gnu.2.17": ("manylinux_2_17_aarch64", "libassay_kernel.so"),
    "x86_64-linux-musl": ("musllinux_1_2_x86_64", "libassay_kernel.so"),
    "aarch64-linux-musl": ("musllinux_1_2_aarch64", "libassay_kernel.so"),
    "x86_64-macos.11.0": ("macosx_11_0_x86_64", "libassay_kernel.dylib"),
    "aarch64-macos.11.0": ("macosx_11_0_arm64", "libassay_kernel.dylib"),
    "x86_64-windows-gnu": ("win_amd64", "libassay_kernel.dll"),
    "aarch64-windows-gnu": ("win_arm64", "libassay_kernel.dll"),
}
"""What Zig calls a machine, the tag of its wheels, and the name of the library there."""

_PROCESSOR = {"x86_64": "x86_64_v3"}
"""As Polars' own runtime; guard.c is compiled for any processor, and asks first."""

_SHOWN = 400
_SECONDS = 1800  # for Windows, the compiler makes a C library first


class KernelHook(BuildHookInterface[Any]):
    """Compiles into the package for an editable installation, and from a temporary folder into a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say for which machine the wheel is."""
        target = os.environ.get("ASSAY_BUILD_TARGET") or own_target()
        if target not in TARGETS:
            raise RuntimeError(f"The kernel cannot be compiled for {target}. Assay works without it, and is slower.")
        tag, name = TARGETS[target]
        self._work = tempfile.TemporaryDirectory(prefix="assay-kernel-")
        library = compiled(Path(self.root, "native"), Path(self._work.name), name, target)
        if version == "editable":
            # NOTE: a process may have loaded the old library: never write into it
            draft = Path(self.root, "assay_kernel", f"{name}.new")
            draft.write_bytes(library.read_bytes())
            draft.replace(draft.with_suffix(""))
        else:
            build_data["force_include"][str(library)] = f"assay_kernel/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the temporary folder."""
        self._work.cleanup()


def own_target() -> str:
    """Return what Zig calls the machine of the running Python."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if sys.maxsize < 2**32:
        machine = f"{machine} in 32 bits"
    is_musl = "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")
    linux = "linux-musl" if is_musl else "linux-gnu.2.17"
    return f"{machine}-{({'linux': linux, 'darwin': 'macos.11.0', 'win32': 'windows-gnu'}).get(sys.platform, sys.platform)}"


def compiled(sources: Path, work: Path, name: str, target: str) -> Path:
    """Compile the sources in a folder, and return the library."""
    package = find_spec("ziglang")
    if package is None or package.origin is None:
        raise RuntimeError("The kernel is compiled with ziglang, which is not installed.")
    zig = Path(package.origin).with_name("zig.exe" if sys.platform == "win32" else "zig")
    shared = ["-target", target, "-fstrip", "-lc", "--cache-dir", str(work), "--global-cache-dir", str(work)]
    guard, library = work / "guard.o", work / name
    processor = _PROCESSOR.get(target.partition("-")[0], "baseline")
    commands = (
        ["build-obj", str(sources / "guard.c"), "-OReleaseSmall", "-fPIC", f"-femit-bin={guard}"],
        [
            *("build-lib", "-dynamic", str(sources / "kernel.zig"), str(guard), "-OReleaseSafe", f"-mcpu={processor}"),
            *("--name", "assay_kernel", f"-femit-bin={library}"),
        ],
    )
    for command in commands:
        done = subprocess.run(  # noqa: S603  (the compiler of the package)
            [str(zig), *command, *shared], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode:
            raise RuntimeError(f"The kernel did not compile for {target}: {done.stderr.strip()[-_SHOWN:]}")
    return library
