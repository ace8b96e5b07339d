"""install.py RECIPE PREFIX VARIANT...: what a recipe uses of Spack, and its phases, in the sources that are the working directory."""
import importlib.util
import os
import shutil
import subprocess
import sys
from types import ModuleType, SimpleNamespace

recipe, prefix, *variants = sys.argv[1:]


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Path(str):
    def __getattr__(self, name):
        return Path(os.path.join(self, name))


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


spack = sys.modules["spack.package"] = ModuleType("spack.package")
spack.Package, spack.join_path, spack.python_platlib = type("Package", (), {}), os.path.join, os.path.join(prefix, "python")
for directive in "license", "version", "variant", "depends_on", "extends", "requires":
    setattr(spack, directive, lambda *positional, **named: None)
spack.mkdirp = lambda path: os.makedirs(path, exist_ok=True)
spack.install_tree = lambda of, to: shutil.copytree(of, to, dirs_exist_ok=True)
spack.make = lambda *arguments: subprocess.run(["make", "-s", *arguments], check=True)
spec = importlib.util.spec_from_file_location("recipe", recipe)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
package = module.Volley()
package.spec, package.prefix, package.compiler = Spec(), Path(prefix), SimpleNamespace(fc="gfortran")
package.stage = SimpleNamespace(path=prefix + ".stage")
if "+mpi" in variants:
    says = [run("pkg-config", flag, "mpi") for flag in ("--modversion", "--cflags", "--libs")]
    package.spec["mpi"] = SimpleNamespace(
        name="openmpi", version=says[0], headers=SimpleNamespace(cpp_flags=says[1]), libs=SimpleNamespace(ld_flags=says[2]))
os.environ["GOMODCACHE"] = run("go", "env", "GOMODCACHE")  # what is there already
package.setup_build_environment(Environment())
package.install(package.spec, package.prefix)
package.setup_run_environment(Environment())
print(os.environ.get("VOLLEY_LIBRARY", "no library"))
