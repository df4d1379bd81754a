# SPDX-License-Identifier: Apache-2.0
from spack.package import *

try:
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:  # Spack before 1.0: spack.package has it
    pass


class Mustache(Package):
    """Text templates for C++11: one header, with the path that Debian gives it."""

    homepage = "https://github.com/kainjow/Mustache"
    url = "https://github.com/kainjow/Mustache/archive/refs/tags/v4.1.tar.gz"

    license("BSL-1.0")

    version("4.1", sha256="acd66359feb4318b421f9574cfc5a511133a77d916d0b13c7caa3783c0bfe167")

    def install(self, spec, prefix):
        mkdirp(prefix.include.kainjow)
        install("mustache.hpp", prefix.include.kainjow)
