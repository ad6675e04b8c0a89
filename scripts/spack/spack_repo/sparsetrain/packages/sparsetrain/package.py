"""Spack recipe of sparsetrain, for Spack 1.0 or later, from a clone:

    spack repo add scripts/spack/spack_repo/sparsetrain
    spack install sparsetrain                    # or sparsetrain +cuda cuda_arch=90 ^openmpi +cuda schedulers=slurm

The sources are those of the clone that holds this file, at the commit that is checked out there."""

import os

from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *

CLONE = os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))


class Sparsetrain(MakefilePackage, CudaPackage):
    """Data-parallel training over MPI in which one chooses how gradients are exchanged: dense, and the published
    sparse algorithms (gTop-k, Ok-Topk, SparDL, HiTopKComm, ...)."""

    git = f"file://{CLONE}"

    license("Apache-2.0")

    version("main", branch="main")

    variant("speech", default=False, description="Datasets of speech, by FFTW, which is under the GPL")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("onednn@2.6:")
    depends_on("libpng")
    depends_on("zlib-api")
    depends_on("utf8proc")
    depends_on("fftw@3 precision=float", when="+speech")
    depends_on("cudnn@9:", when="+cuda")

    # The Makefile asks pkg-config for MPI, and knows the files of these two.
    requires("^[virtuals=mpi] openmpi", "^[virtuals=mpi] mpich", policy="one_of", msg="Open MPI or MPICH")
    conflicts("platform=darwin", msg="written for Linux")
    conflicts("platform=windows", msg="written for Linux")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs, as cuda_arch=90")

    def knobs(self):
        spec = self.spec
        mpi = "mpich" if spec["mpi"].name == "mpich" else "ompi-c"
        knobs = [f"PREFIX={self.prefix}", f"MPI={mpi}", "WERROR=0", "V=1"]
        knobs.append(f"FFTW={'auto' if spec.satisfies('+speech') else '0'}")
        if spec.satisfies("+cuda"):
            arch = " ".join(spec.variants["cuda_arch"].value)
            return knobs + ["CUDA=1", f"CUDA_ARCH={arch}", f"CUDNN={spec['cudnn'].prefix}"]
        return knobs + ["CUDA=0"]

    @property
    def build_targets(self):
        return ["all"] + self.knobs()

    @property
    def install_targets(self):
        return ["install"] + self.knobs()
