"""install.py RECIPE PREFIX VARIANT...: the phases of Spack's recipe, in the sources that are the working directory."""
import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

from spack.package import Path

recipe, prefix, *variants = sys.argv[1:]
spec = importlib.util.spec_from_file_location("recipe", recipe)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.python_platlib = os.path.join(prefix, "python")


def says(*arguments):
    return subprocess.run(["pkg-config", *arguments, "mpi"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Spec(dict):
    def satisfies(self, variant):
        return variant in variants


class Environment:
    def set(self, name, value):
        os.environ[name] = value

    def append_flags(self, name, value):
        os.environ[name] = (os.environ.get(name, "") + " " + value).strip()

    def prepend_path(self, name, value):
        os.environ[name] = value + ":" + os.environ.get(name, "")


package = module.Volley()
package.spec, package.prefix, package.compiler = Spec(), Path(prefix), SimpleNamespace(fc="gfortran")
package.stage = SimpleNamespace(path=prefix + ".stage")
if "+mpi" in variants:
    package.spec["mpi"] = SimpleNamespace(
        name="openmpi", version=says("--modversion"),
        headers=SimpleNamespace(cpp_flags=says("--cflags")), libs=SimpleNamespace(ld_flags=says("--libs")))
modules = subprocess.run(["go", "env", "GOMODCACHE"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
os.environ["GOMODCACHE"] = modules  # what is there already
package.setup_build_environment(Environment())
package.install(package.spec, package.prefix)
package.setup_run_environment(Environment())
print(os.environ.get("VOLLEY_LIBRARY", "no library"))
