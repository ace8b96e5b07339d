# Copyright: as Volley's LICENSE. A recipe for Spack: docs/deploy.md says how to use it.
from spack.package import *


class Volley(Package):
    """Protect directories and memory of many nodes against the loss of some of them: parity, for MPI jobs and without."""

    license("Apache-2.0")
    version("develop")  # a checkout: spack develop

    variant("mpi", default=True, description="libvolley, and volley --comm mpi")
    variant("fortran", default=True, when="+mpi", description="the module volley")
    variant("python", default=False, description="the package volley, with volley.mpi where +mpi is")

    depends_on("c", type="build")
    depends_on("go@1.26.8:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("mpi@3:", when="+mpi")
    depends_on("python@3.9:", type=("build", "run"), when="+python")
    depends_on("py-numpy", type="run", when="+python+mpi")
    depends_on("py-mpi4py", type="run", when="+python+mpi")
    extends("python", when="+python")
    requires("%gcc", when="+fortran", msg="the module is built with gfortran's flags")

    def setup_build_environment(self, env):
        env.set("GOTOOLCHAIN", "local")
        env.set("GOPATH", join_path(self.stage.path, "go"))
        env.append_flags("GOFLAGS", "-buildvcs=false")
        env.append_flags("GOFLAGS", "-modcacherw")
        env.set("FORTRAN", self.compiler.fc if self.spec.satisfies("+fortran") else "none")
        if self.spec.satisfies("+mpi"):
            env.prepend_path("PKG_CONFIG_PATH", self.prefix.lib.pkgconfig)

    def setup_run_environment(self, env):
        if self.spec.satisfies("+mpi"):
            env.set("VOLLEY_LIBRARY", join_path(self.prefix.lib, "libvolley.so"))

    def install(self, spec, prefix):
        if spec.satisfies("+mpi"):
            # Libraries of MPI name their files for pkg-config in their own ways. Programs that use volley.pc read this one, too.
            mkdirp(prefix.lib.pkgconfig)
            with open(join_path(prefix.lib.pkgconfig, "mpi.pc"), "w") as f:
                f.write(f"Name: mpi\nDescription: {spec['mpi'].name}\nVersion: {spec['mpi'].version}\n")
                f.write(f"Cflags: {spec['mpi'].headers.cpp_flags}\nLibs: {spec['mpi'].libs.ld_flags}\n")
        make("install", f"PREFIX={prefix}", "MPI=mpi" if spec.satisfies("+mpi") else "MPI=none")
        if spec.satisfies("+python"):
            install_tree("python/volley", join_path(python_platlib, "volley"))
