"""Makes the wheel that carries the binary one for the platform of the binary: see `make wheel`."""
import os

from setuptools import setup

# The binary for Linux is static. So it needs less than what manylinux2014 promises, which every pip since 2019 takes.
PLATFORMS = {
    "linux/amd64": "manylinux2014_x86_64",
    "linux/arm64": "manylinux2014_aarch64",
    "darwin/amd64": "macosx_11_0_x86_64",
    "darwin/arm64": "macosx_11_0_arm64",
}
target = os.environ.get("VOLLEY_PLATFORM")
if target and target not in PLATFORMS:
    raise SystemExit(f"no wheel for {target}: there are those for {', '.join(PLATFORMS)}")
setup(options={"bdist_wheel": {"plat_name": PLATFORMS[target]}} if target else {})
