# SPDX-License-Identifier: Apache-2.0
import tempfile

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.python import PythonPipBuilder
except ImportError:  # Spack before 1.0: spack.package has CMakePackage
    from spack.build_systems.python import PythonPipBuilder


class Ddlrun(CMakePackage):
    """Launcher for training programs of several processes, and libddl, their collectives.

    The sources are a checkout or an unpacked archive; INSTALL.md says how Spack is told where it is.
    """

    license("Apache-2.0", when="~slurm")
    # slurm-probe is a program of its own, which links libslurm.
    license("Apache-2.0 AND GPL-3.0-or-later", when="+slurm")

    version("0.2.0")

    variant("mpi", default=True, description="libddl's collectives can be carried out by this MPI")
    variant("python", default=False, description="The package ddl for Python")
    variant("slurm", default=False, description="slurm-probe, which asks libslurm about the cluster (GPL)")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")

    # Headers only, or linked statically.
    depends_on("asio@1.22:", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("fmt@9:", type="build")
    depends_on("mustache@4:", type="build")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("tl-expected", type="build")

    depends_on("hwloc@2.4:")
    depends_on("libevent@2.1:")
    depends_on("openssl@3:")
    depends_on("pmix@4.2.6:")
    depends_on("yaml-cpp@0.7:")

    depends_on("mpi", when="+mpi")
    depends_on("slurm", when="+slurm")

    extends("python@3.8:", when="+python")
    depends_on("py-pip", type="build", when="+python")
    depends_on("py-setuptools@61:", type="build", when="+python")
    depends_on("py-wheel", type="build", when="+python")
    depends_on("py-cffi@1.15:", type=("build", "run"), when="+python")

    conflicts("%gcc@:11", msg="ddlrun is C++20: it needs gcc 12 or clang 16, or newer")
    conflicts("%clang@:15", msg="ddlrun is C++20: it needs gcc 12 or clang 16, or newer")

    def cmake_args(self):
        return [
            self.define("DDL_BUILD_TESTS", False),
            self.define("DDL_BUILD_BENCH", False),
            self.define("DDL_BUILD_EXAMPLES", False),
            self.define_from_variant("DDL_SLURM_PROBE", "slurm"),
            self.define("DDL_MPI_COMPILERS", self.spec["mpi"].mpicc if self.spec.satisfies("+mpi") else ""),
        ]

    @run_after("install", when="+python")
    def install_python(self):
        source = self.stage.source_path
        # The build leaves files beside the package, so it is one of a copy.
        with tempfile.TemporaryDirectory() as scratch:
            install_tree(join_path(source, "python"), scratch)
            with working_dir(scratch):
                pip(
                    *PythonPipBuilder.std_args(self),
                    f"--prefix={self.prefix}",
                    ".",
                    extra_env={"DDL_INCLUDE": join_path(source, "runtime", "include")},
                )

    def test_version(self):
        """ddlrun starts and has the version of this package"""
        ddlrun = which(join_path(self.prefix.bin, "ddlrun"), required=True)
        assert str(self.spec.version) in ddlrun("--version", output=str.split, error=str.split)

    def test_two_ranks(self):
        """ddlrun starts two ranks on this host, and both end"""
        ddlrun = which(join_path(self.prefix.bin, "ddlrun"), required=True)
        ddlrun("-np", "2", "--oversubscribe", "true")
