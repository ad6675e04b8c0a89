# sparsetrain. Targets: all (default), sim, check, check-quick (two minutes of check, in which every module has tests), soak, coverage, fuzz-targets, bench, lint, format, install, uninstall, clean.
# Knobs:  V=1 (show commands)  BUILD=dir  CC=cc  MPI=auto|ompi-c|mpich  SAN=address,undefined  CUDA=auto|0|1  FFTW=auto|0  WERROR=0|1  HARDEN=0|1  PREFIX= DESTDIR=
#         CUDA_ARCH="80 90" (compute capabilities; the last one also for later chips)
#         CUDNN=dir CUBLAS=dir (folders with include/ and lib/, where the toolkit has none, as those of Python's wheels)

BUILD   ?= build
PREFIX  ?= /usr/local
MPI     ?= auto
SAN     ?=
CUDA    ?= auto
FFTW    ?= auto
WERROR  ?= 1
HARDEN  ?= 1
VERSION := 0.1.0

# A build with sanitizers gets a folder of its own, so that it never mixes with the plain one.
comma   := ,
ifneq ($(SAN),)
override BUILD := $(BUILD)/san-$(subst $(comma),-,$(SAN))
endif

modules := base data topk comm nets cli
# What goes into the CUDA plugin and not into the program.
plugin_c  := $(wildcard $(addsuffix /cuda/*.c,$(modules)) nets/cudnn/*.c nets/optimisers/cuda_*.c)
plugin_cu := $(wildcard $(addsuffix /cuda/*.cu,$(modules)) nets/optimisers/cuda_*.cu)
# What is in both.
plugin_too := base/files/place_cache.c nets/optimisers/adam_rates.c nets/layers/layer_missing.c
sources_of = $(filter-out $(plugin_c),$(wildcard $(1)/*.c $(1)/*/*.c))
of_mpi    := $(wildcard comm/transport/transport_mpi*.c comm/sim/*.c)
sources := $(foreach m,$(modules),$(call sources_of,$(m)))
objects  = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
# A test's name says its module, and is the only one of its kind in all folders of tests.
tests_of  = $(addprefix $(BUILD)/tests/,$(basename $(notdir $(wildcard $(1)))))
tests    := $(call tests_of,$(foreach m,$(modules) exchanges files fuzz,tests/$(m)/*_*.c))
object_of = $(addprefix $(BUILD)/obj/,$(addsuffix .o,$(basename $(wildcard tests/*/$(1).c))))

# -- libraries: pkg-config for every one that has a file; oneDNN 2.x has none, so it is found by linking ----
ifeq ($(MPI),auto)
mpi_pkg := $(firstword $(foreach p,ompi-c ompi mpich,$(shell pkg-config --exists $(p) 2>/dev/null && echo $(p))))
else
mpi_pkg := $(MPI)
endif
have     = $(shell pkg-config --exists $(1) 2>/dev/null && echo found || echo missing)
hash    := \#
links    = $(shell printf '$(hash)include <$(1)>\nint main(void){return 0;}\n' | $(CC) -x c - $(2) -o /dev/null 2>/dev/null && echo found || echo missing)
has_mpi  := $(if $(mpi_pkg),$(call have,$(mpi_pkg)),missing)
has_png  := $(call have,libpng)
has_zlib := $(call have,zlib)
# Without it the build has no dataset that is cut into pieces of words (data/pairs/unicode.c).
has_utf8proc := $(call have,libutf8proc)
# Without it the build has no dataset of speech (data/speech/spectrogram.c). It is under the GPL: docs/training.md, Speech.
has_fftw := $(if $(filter 0,$(FFTW)),missing,$(call have,fftw3f))
has_dnnl := $(call links,oneapi/dnnl/dnnl.h,-ldnnl)
has_cmocka := $(call have,cmocka)
nvcc     := $(if $(filter 0,$(CUDA)),,$(shell command -v nvcc 2>/dev/null))
cuda_home := $(patsubst %/bin/nvcc,%,$(if $(nvcc),$(shell readlink -f $(nvcc))))
# One that lies outside the toolkit; a wheel has it without the name that -l looks for, so by its file.
outside   = $(if $(1),-L$(1)/lib -Wl$(comma)-rpath$(comma)$(abspath $(1))/lib) -l$(if $(1),:$(notdir $(lastword $(2) $(sort $(wildcard $(1)/lib/$(2).*)))),$(patsubst lib%.so,%,$(2)))
cuda_includes := $(patsubst %,-isystem %/include,$(CUDNN) $(CUBLAS) $(cuda_home))
# Where a toolkit has its libraries depends on who packed it.
cuda_libs := $(call outside,$(CUDNN),libcudnn.so) $(call outside,$(CUBLAS),libcublas.so) $(patsubst %,-L%,$(wildcard $(cuda_home)/lib64 $(cuda_home)/lib)) -lcudart_static -lrt
has_cudnn := $(if $(nvcc),$(call links,cudnn_v9.h,$(cuda_includes) $(cuda_libs) -ldl -lpthread),missing)
CUDA_ARCH ?= 80 90
smpicc   := $(and $(shell command -v smpirun 2>/dev/null),$(shell command -v smpicc 2>/dev/null))

ifeq ($(CUDA),1)
missing_cuda := $(if $(nvcc),,nvcc) $(if $(filter found,$(has_cudnn)),,cuDNN-9)
endif
missing  := $(if $(filter found,$(has_mpi)),,libopenmpi-dev) $(if $(filter found,$(has_png)),,libpng-dev) \
            $(if $(filter found,$(has_zlib)),,zlib1g-dev) $(if $(filter found,$(has_dnnl)),,libdnnl-dev) $(missing_cuda)

# -- flags ---------------------------------------------------------------------------------------------------
warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            $(if $(filter 1,$(WERROR)),-Werror)
optimise := $(if $(SAN),-O1 -g1 -fno-omit-frame-pointer -fsanitize=$(SAN) -fno-sanitize-recover=all -DST_SANITIZE,-O3 -g)
# Against what a damaged or crafted file may still make of a mistake of ours, where compiler and linker know it; not beside
# sanitizers, which check the same and more. What it costs is in docs/files.md. HARDEN=0 leaves it out.
accepts   = $(shell printf '$(hash)include <stdio.h>\nint main(void){return 0;}\n' | $(CC) -O2 -Werror $(1) -x c - -o /dev/null 2>/dev/null && echo '$(1)')
fortify  := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=
ifeq ($(HARDEN)$(SAN),1)
harden   := $(if $(filter -O0,$(CFLAGS)),,$(or $(call accepts,$(fortify)3),$(call accepts,$(fortify)2))) \
            $(foreach f,-fstack-protector-strong -fstack-clash-protection -fcf-protection,$(call accepts,$(f)))
harden_ld := $(call accepts,-Wl$(comma)-z$(comma)relro -Wl$(comma)-z$(comma)now)
pie      := $(call accepts,-fPIE -pie)
endif
CFLAGS   ?=
# no-math-errno: nobody asks errno about square roots, and a loop with one can be vectorised. no-trapping-math: nor does anybody
# wait for floating-point traps; with them gcc takes a choice between two numbers for a branch, which it makes vectors of for
# AVX-512 alone. Neither changes a bit of a result.
cflags   := -std=c11 -D_GNU_SOURCE -I. -fopenmp -ffp-contract=off -fno-math-errno -fno-trapping-math $(optimise) $(harden) $(warnings) -MMD -MP \
            $(shell pkg-config --cflags libpng zlib 2>/dev/null) \
            $(if $(filter found,$(has_utf8proc)),-DST_UTF8PROC $(shell pkg-config --cflags libutf8proc)) \
            $(if $(filter found,$(has_fftw)),-DST_FFTW $(shell pkg-config --cflags fftw3f)) $(CFLAGS)
mpi_cflags := $(if $(mpi_pkg),$(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(mpi_pkg) 2>/dev/null)))
ldflags  := -fopenmp $(if $(SAN),-fsanitize=$(SAN)) $(harden_ld) $(if $(pie),-pie) $(LDFLAGS)
# An object is made once, for the program, the library and the simulation, so that it may lie anywhere; calls between objects go
# straight, as nothing of them is seen outside but what the library exports.
shared   := -fPIC -fvisibility=hidden
libs_base := $(shell pkg-config --libs zlib 2>/dev/null || echo -lz) -lm -lpthread -ldl
libs_data := $(shell pkg-config --libs libpng 2>/dev/null || echo -lpng) $(if $(filter found,$(has_utf8proc)),$(shell pkg-config --libs libutf8proc)) \
             $(if $(filter found,$(has_fftw)),$(shell pkg-config --libs fftw3f))
libs_comm := $(if $(mpi_pkg),$(shell pkg-config --libs $(mpi_pkg) 2>/dev/null))
libs_nets := -ldnnl

quiet     = $(if $(filter 1,$(V)),,@printf '  %-3s %s\n' $(1) $(2);)

.PHONY: all programs library sim tests check check-quick bench lint format install uninstall clean report cuda
.DELETE_ON_ERROR:
.SECONDARY:
all: report programs
programs: $(BUILD)/sparsetrain cuda library

report:
	@echo "MPI $(has_mpi) ($(or $(mpi_pkg),none))  libpng $(has_png)  zlib $(has_zlib)  utf8proc $(has_utf8proc)  FFTW $(has_fftw)  oneDNN $(has_dnnl)  cmocka $(has_cmocka)  nvcc $(if $(nvcc),found,missing)  cuDNN $(has_cudnn)  SimGrid $(if $(smpicc),found,missing)"
	@test -z "$(strip $(missing))" || { echo "missing: install $(strip $(missing)) (sh scripts/deps.sh does it on Debian and Ubuntu)" >&2; exit 1; }

# -- rules ---------------------------------------------------------------------------------------------------
$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(cflags) $(shared) -c $< -o $@
$(call objects,$(of_mpi)): cflags += $(mpi_cflags)
of_version := $(addprefix $(BUILD)/,obj/base/device/plugin.o library/plugin.o obj/cli/version.o obj/comm/library.o)
$(of_version): cflags += -DST_VERSION='"$(VERSION)"' -DST_COMMIT='"$(commit)"' -DST_CFLAGS='"$(strip $(optimise) $(harden))"'
commit := $(shell sh scripts/lib/commit.sh)

# version.o is made again when the commit changes
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(commit)' | cmp -s - $@ || echo '$(commit)' > $@
$(BUILD)/obj/cli/version.o $(BUILD)/obj/comm/library.o: $(BUILD)/commit
# ... and what knows where `make install` puts the plugin when that changes
$(BUILD)/prefix: FORCE
	@mkdir -p $(@D)
	@echo '$(abspath $(PREFIX))' | cmp -s - $@ || echo '$(abspath $(PREFIX))' > $@
$(BUILD)/library/plugin.o: base/device/plugin.c $(BUILD)/prefix Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(cflags) -DST_PLUGIN_FOLDER='"$(abspath $(PREFIX))/lib/sparsetrain/"' $(shared) -c $< -o $@
.PHONY: FORCE
FORCE:

define module_rule
$(BUILD)/lib$(1).a: $(call objects,$(call sources_of,$(1)))
	@rm -f $$@
	$$(call quiet,AR,$$@)ar rcs $$@ $$^
endef
$(foreach m,$(filter-out cli,$(modules)),$(eval $(call module_rule,$(m))))

$(BUILD)/sparsetrain: $(call objects,$(call sources_of,cli)) $(foreach m,data nets comm topk base,$(BUILD)/lib$(m).a)
	$(call quiet,LD,$@)$(CC) $(ldflags) $^ $(libs_nets) $(libs_data) $(libs_comm) $(libs_base) -o $@

# -- the library: exchanges for other programs (comm/sparsetrain.h). Nothing is seen of it but what that header names. --------
library_objects := $(filter-out $(BUILD)/obj/base/device/plugin.o,$(call objects,$(foreach m,base topk comm,$(call sources_of,$(m))))) $(BUILD)/library/plugin.o
library_so   := libsparsetrain.so.$(VERSION)
soname       := libsparsetrain.so.$(firstword $(subst ., ,$(VERSION)))
# What that header names is in this one.
$(BUILD)/obj/comm/library.o: shared = -fPIC
# It stays loaded for good: MPI and the plugin have functions of it.
$(BUILD)/$(library_so): $(library_objects) comm/sparsetrain.map
	$(call quiet,LD,$@)$(CC) -shared -fopenmp $(if $(SAN),-fsanitize=$(SAN)) $(harden_ld) -Wl,-soname,$(soname) -Wl,-z,nodelete -Wl,--version-script=comm/sparsetrain.map \
	    $(library_objects) $(libs_comm) $(libs_base) $(LDFLAGS) -o $@
	@ln -sf $(library_so) $(BUILD)/$(soname) && ln -sf $(soname) $(BUILD)/libsparsetrain.so
# One object, in which only those names are left to link with.
$(BUILD)/libsparsetrain.a: $(library_objects)
	@rm -f $@
	$(call quiet,AR,$@)$(LD) -r $^ -o $(BUILD)/library/library.o && objcopy --localize-hidden $(BUILD)/library/library.o && ar rcs $@ $(BUILD)/library/library.o
library: $(BUILD)/$(library_so) $(BUILD)/libsparsetrain.a

# A test links only what its module may include: the rule of the folders, kept by the linker.
libs_of_base := base
libs_of_data := data base
libs_of_topk := topk base
libs_of_comm := comm topk base
libs_of_nets := nets base
libs_of_netlab := base
libs_of_cli  := data nets comm topk base
libs_of_fuzz := $(libs_of_cli)
module_of = $(firstword $(subst _, ,$(notdir $(1))))
cli_parts = $(filter-out $(BUILD)/obj/cli/main.o,$(call objects,$(call sources_of,cli)))
.SECONDEXPANSION:
$(BUILD)/tests/%: $$(call object_of,$$*) $$(foreach m,$$(libs_of_$$(call module_of,$$*)),$(BUILD)/lib$$(m).a) \
                  $$(if $$(filter cli fuzz,$$(call module_of,$$*)),$$(cli_parts)) \
                  $$(if $$(filter fuzz,$$(call module_of,$$*)),$(BUILD)/obj/tests/lib/fuzzing.o $(BUILD)/obj/tests/lib/fuzzfiles.o)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ldflags) $(filter %.o,$^) $(filter %.a,$^) $(libs_nets) $(libs_data) $(libs_comm) $(libs_base) -lcmocka -o $@

$(BUILD)/tests/netlab_links: $(BUILD)/obj/scripts/netlab/links.o

# With which tests change checkpoints as somebody could who wants to do harm.
$(BUILD)/tests/craft: $(BUILD)/obj/tests/lib/crafting.o $(BUILD)/libbase.a
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ldflags) $^ $(libs_base) -o $@

# A library that the program must not load, or not take for its plugin.
$(BUILD)/tests/libplanted.so: tests/preload/planted.c base/device/plugin.h base/device/device.h
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -std=c11 -D_GNU_SOURCE -O1 -I. -DST_VERSION='"$(VERSION)"' -fPIC -shared $(warnings) $< -o $@

# With which ranks of MPICH share cores.
$(BUILD)/tests/libnapping.so: tests/preload/napping.c
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared $(warnings) $< -ldl -o $@

# The switch of scripts/netlab.sh, which builds it when it is needed; Linux only.
$(BUILD)/netlab-switch: $(BUILD)/obj/scripts/netlab/switch.o $(BUILD)/obj/scripts/netlab/links.o $(BUILD)/libbase.a
	$(call quiet,LD,$@)$(CC) $(ldflags) $^ $(libs_base) -o $@

# -- CUDA plugin: loaded by program or library where a GPU answers; -z defs: it needs no symbol of theirs. fmad=false: sums and
# products round as on the CPU ---
last_arch := $(lastword $(CUDA_ARCH))
gencode   := $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) -gencode arch=compute_$(last_arch),code=compute_$(last_arch)
nvccflags := -std=c++17 -O3 -I. -fmad=false $(gencode) -Xcompiler -fPIC,-Wall,-Wextra,-Wshadow$(if $(filter 1,$(WERROR)),$(comma)-Werror --Werror all-warnings)
cuda_cflags = $(cflags) -fPIC $(cuda_includes) -DST_VERSION='"$(VERSION)"' -DST_CUDA_ARCH='"$(strip $(CUDA_ARCH))"'
plugin_objects = $(patsubst %,$(1)/%.o,$(plugin_c) $(plugin_too) $(plugin_cu))

$(BUILD)/cuda/%.c.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(cuda_cflags) -c $< -o $@
$(BUILD)/cuda/%.cu.o: %.cu Makefile
	@mkdir -p $(@D)
	$(call quiet,NVC,$@)$(nvcc) $(nvccflags) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(BUILD)/libsparsetrain_cuda.so: $(call plugin_objects,$(BUILD)/cuda)
	$(call quiet,LD,$@)$(CC) -shared -Wl,-z,lazy,-z,defs $^ $(cuda_libs) -ldl -lpthread -lstdc++ -lm -o $@

# The same sources over a stand-in for the CUDA runtime, cuBLAS and cuDNN in host memory, for tests alone: kernels run
# under an emulator (tests/hostcuda/).
hostcuda_c := $(filter-out tests/hostcuda/selftest%,$(wildcard tests/hostcuda/*.c tests/hostcuda/*/*.c tests/hostcuda/*.cc))
host_cxxflags = -std=c++17 -DST_HOSTCUDA -I. $(cuda_includes) -fPIC $(filter-out -O3,$(optimise)) -O2 -ffp-contract=off \
                -Wall -Wextra -Wshadow -Wno-unknown-pragmas $(if $(filter 1,$(WERROR)),-Werror) -MMD -MP
$(BUILD)/hostcuda/%.c.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(cuda_cflags) -DST_HOSTCUDA -c $< -o $@
$(BUILD)/hostcuda/%.o: % Makefile
	@mkdir -p $(@D)
	$(call quiet,CXX,$@)$(CXX) $(host_cxxflags) -x c++ -c $< -o $@
$(BUILD)/tests/libsparsetrain_hostcuda.so: $(call plugin_objects,$(BUILD)/hostcuda) $(patsubst %,$(BUILD)/hostcuda/%.o,$(hostcuda_c))
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CXX) -shared -Wl,-z,lazy,-z,defs $(if $(SAN),-fsanitize=$(SAN)) $^ -lm -lpthread -o $@

# Tests of the stand-in itself.
standin_objects := $(patsubst %,$(BUILD)/hostcuda/%.o,$(hostcuda_c))
$(BUILD)/tests/hostcuda_%: $(BUILD)/hostcuda/tests/gpu/hostcuda_%.c.o $(BUILD)/hostcuda/tests/hostcuda/selftest.cu.o $(standin_objects)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CXX) $(ldflags) $^ -lcmocka -lm -lpthread -o $@

$(BUILD)/tests/hostcuda_look_back: $(BUILD)/hostcuda/tests/gpu/hostcuda_look_back.cu.o
# One of a file of the plugin that talks to cuDNN alone.
$(BUILD)/tests/hostcuda_sdpa: $(patsubst %,$(BUILD)/hostcuda/nets/cudnn/backend_cudnn_%.c.o,parts sdpa) $(BUILD)/libbase.a

# What can be asked of the real cuDNN where there is no GPU.
$(BUILD)/tests/cudnn_%: $(BUILD)/cuda/tests/gpu/cudnn_%.c.o $(patsubst %,$(BUILD)/cuda/nets/cudnn/backend_cudnn_%.c.o,parts plans sdpa) $(BUILD)/libbase.a
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ldflags) $^ $(cuda_libs) $(patsubst %,-Wl$(comma)-rpath$(comma)%,$(wildcard $(cuda_home)/lib64 $(cuda_home)/lib)) -lcmocka $(libs_base) -ldl -o $@

# With a driver that is none cuDNN compiles kernels for a GPU that is not there.
$(BUILD)/tests/cudnn_sdpa: | $(BUILD)/tests/driverless/libcuda.so.1
$(BUILD)/tests/driverless/libcuda.so.1: tests/preload/driverless.c
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -std=c11 -O1 -fPIC -shared -Wl,-soname,libcuda.so.1 $(warnings) $< -o $@

# What scripts/gpu-check.sh holds the plugin against; CUB takes a while to compile.
$(BUILD)/tests/gpu_peers: scripts/gpu/peers.cu
	@mkdir -p $(@D)
	$(call quiet,NVC,$@)$(nvcc) -O3 -std=c++17 -arch=sm_$(last_arch) -Xcompiler -Wall,-Wextra$(if $(filter 1,$(WERROR)),$(comma)-Werror --Werror all-warnings) $< -o $@

# What scripts/gpu-probe.sh asks of a GPU.
tests: $(BUILD)/tests/gpu_probe
$(BUILD)/tests/gpu_probe: $(BUILD)/obj/tests/lib/gpuprobe.o $(foreach m,nets topk base,$(BUILD)/lib$(m).a)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ldflags) $^ $(libs_nets) $(libs_base) -o $@

# Sanitizers know nothing of the real libraries, so that with them only the stand-in is built.
ifeq ($(has_cudnn),found)
cuda: $(if $(SAN),,$(BUILD)/libsparsetrain_cuda.so)
hostcuda := $(BUILD)/tests/libsparsetrain_hostcuda.so $(call tests_of,tests/gpu/hostcuda_*.c)
gpu_peers := $(if $(SAN),,$(BUILD)/tests/gpu_peers)
cudnn_tests := $(if $(SAN),,$(call tests_of,tests/gpu/cudnn_*.c))
else
cuda:
endif

# -- the same program over a simulated cluster: a library that smpirun loads once for each rank (docs/simulation.md) ----------
# What smpicc puts before a file gives it the simulated clock and an exit of its own rank; memory stays the C library's. So what asks
# for those, or for MPI, is made anew, and main, which smpirun must find; the rest is the program's.
open     := (
sim_names = sleep|usleep|nanosleep|gettimeofday|clock_gettime|getopt|getopt_long|getopt_long_only|exit|getpid
sim_own  := $(if $(smpicc),$(sort $(of_mpi) cli/main.c $(shell grep -lE '(^|[^A-Za-z0-9_])($(sim_names))[[:space:]]*[$(open)]' $(sources))))
sim_cflags = $(cflags) -g0 -DSMPI_NO_OVERRIDE_MALLOC -fmacro-prefix-map=$(CURDIR)/= $(sim_includes)
sim_includes = $(patsubst -I%,-isystem %,$(filter-out -I/usr/include,$(filter -I%,$(shell $(smpicc) -show -c))))
# Where the kernel looks for what starts a program: with it the library, started by hand, can say what it is.
sim_loader = $(shell readelf -l /bin/sh 2>/dev/null | sed -n 's/.*interpreter: \(.*\)]/\1/p')
sim_objects := $(patsubst %.c,$(BUILD)/sim/obj/%.o,$(sim_own))
sim_shared  := $(call objects,$(filter-out $(sim_own),$(sources)))
$(BUILD)/sim/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,SIM,$@)$(smpicc) $(sim_cflags) -c $< -o $@
$(BUILD)/sim/obj/cli/main.o: sim_cflags += $(if $(sim_loader),-DST_LOADER='"$(sim_loader)"')
$(BUILD)/sparsetrain-sim: $(sim_objects) $(sim_shared)
	@! nm -A -u $(sim_shared) | grep -E ' U ($(sim_names)|MPI_[A-Za-z_]*)(@|$$)' || { echo "$@: these ask the real clock, or MPI: what does so by a header belongs to sim_own" >&2; exit 1; }
	$(call quiet,LD,$@)$(smpicc) -fopenmp -s -Wl,-Bsymbolic $(if $(sim_loader),-Wl$(comma)-e$(comma)simulation_by_hand) $^ $(libs_nets) $(libs_data) $(libs_base) $(LDFLAGS) -o $@
ifneq ($(smpicc),)
sim: $(BUILD)/sparsetrain-sim $(BUILD)/sparsetrain
else
sim:
	@echo "make sim: SimGrid is missing: install libsimgrid-dev (sh scripts/deps.sh sim does it on Debian and Ubuntu)" >&2; exit 1
endif

# -- checks --------------------------------------------------------------------------------------------------
tests: programs $(tests) $(BUILD)/tests/craft $(hostcuda) $(gpu_peers) $(cudnn_tests) $(if $(SAN),,$(BUILD)/tests/libplanted.so $(if $(smpicc),sim)) \
       $(if $(filter Linux,$(shell uname)),$(BUILD)/netlab-switch)
check: tests
	BUILD='$(BUILD)' SAN='$(SAN)' sh tests/run.sh $(ONLY)
check-quick: tests
	BUILD='$(BUILD)' SAN='$(SAN)' QUICK=1 sh tests/run.sh $(ONLY)
bench: programs
	BUILD='$(BUILD)' sh scripts/bench.sh
lint:
	sh scripts/lint.sh
format:
	clang-format -i $(filter-out tests/golden/%,$(wildcard $(foreach f,*.c *.h *.cu,$(foreach m,$(modules) tests scripts,$(m)/$(f) $(m)/*/$(f))) tests/hostcuda/*.cc tests/hostcuda/*/*.[ch]))

include scripts/checks.mk

# -- installation --------------------------------------------------------------------------------------------
root      = $(DESTDIR)$(PREFIX)
bindir    = $(root)/bin
plugindir = $(root)/lib/sparsetrain
pythondir = $(root)/share/sparsetrain/python
docdir    = $(root)/share/doc/sparsetrain
# Scripts that serve an installed program as well as a clone.
scriptdir = $(root)/share/sparsetrain/scripts
scripts  := $(addprefix scripts/,plot.sh plot/plot.gp plot/read.awk plot/group.awk plot/merge.awk sweep.sh sweep/table.awk lib/common.sh lib/csv.awk lib/stats.awk mpi-env.sh \
            fetch-data.sh slurm/generate.sh slurm/collect.sh)
# Made by the program from its tables, and what other scripts ask of an installation: VERB, a verb's words:where
made     := man:share/man/man1/sparsetrain.1 completion_bash:share/bash-completion/completions/sparsetrain \
            completion_zsh:share/zsh/site-functions/_sparsetrain
pc        = $(root)/lib/pkgconfig/sparsetrain.pc
verb_of   = $(subst _, ,$(firstword $(subst :, ,$(1))))
file_of   = $(root)/$(lastword $(subst :, ,$(1)))
define newline


endef
install: programs
	install -d $(bindir) $(root)/include $(pythondir) $(docdir)/docs/examples $(scriptdir)/slurm $(scriptdir)/plot $(scriptdir)/sweep $(scriptdir)/lib $(dir $(pc))
	install -m 755 $(BUILD)/sparsetrain $(bindir)/sparsetrain
	if [ -f $(BUILD)/libsparsetrain_cuda.so ]; then install -d $(plugindir) && install -m 755 $(BUILD)/libsparsetrain_cuda.so $(plugindir); fi
	install -m 644 comm/sparsetrain.h $(root)/include
	install -m 644 comm/torch/sparsetrain.py $(pythondir)
	install -m 755 $(BUILD)/$(library_so) $(root)/lib
	install -m 644 $(BUILD)/libsparsetrain.a $(root)/lib
	ln -sf $(library_so) $(root)/lib/$(soname) && ln -sf $(soname) $(root)/lib/libsparsetrain.so
	$(foreach m,$(made),install -d $(dir $(call file_of,$(m))) && $(BUILD)/sparsetrain $(call verb_of,$(m)) > $(call file_of,$(m))$(newline)	)
	$(foreach s,$(scripts),install -m 644 $(s) $(scriptdir)/$(patsubst scripts/%,%,$(s))$(newline)	)
	sed -e 's/@VERSION@/$(VERSION)/' -e "s/@COMMIT@/$$($(BUILD)/sparsetrain version | sed -n '1s/.*(commit \(.*\))/\1/p')/" -e 's/@MPI@/$(mpi_pkg)/' -e 's/@PRIVATE@/$(strip -fopenmp $(libs_base))/' -e 's/@MPI_VERSION@/$(shell pkg-config --modversion $(mpi_pkg))/' \
	    -e "s/@FEATURES@/onednn$$([ ! -f $(BUILD)/libsparsetrain_cuda.so ] || echo ' cuda')/" scripts/sparsetrain.pc.in > $(pc)
	install -m 644 README.md LICENSE CITATION.cff CHANGELOG.md $(docdir)
	install -m 644 $(wildcard docs/*.md) $(docdir)/docs
	install -m 644 $(wildcard docs/examples/*) $(docdir)/docs/examples
uninstall:
	rm -f $(bindir)/sparsetrain $(pc) $(root)/include/sparsetrain.h $(root)/lib/libsparsetrain.a $(root)/lib/libsparsetrain.so* $(foreach m,$(made),$(call file_of,$(m)))
	rm -rf $(docdir) $(plugindir) $(root)/share/sparsetrain
clean:
	rm -rf $(BUILD)

-include $(patsubst %.o,%.d,$(library_objects) $(call objects,$(sources) $(wildcard tests/*/*.c scripts/*/*.c)) $(call plugin_objects,$(BUILD)/cuda) \
           $(call fuzz_object,$(fuzz_about) $(wildcard tests/fuzz/*.c tests/lib/fuzzfiles.c)) \
           $(call plugin_objects,$(BUILD)/hostcuda) $(standin_objects) $(sim_objects) $(patsubst %,$(BUILD)/hostcuda/%.o,$(wildcard tests/gpu/hostcuda_*.c*) tests/hostcuda/selftest.cu) \
           $(patsubst %,$(BUILD)/cuda/%.o,$(wildcard tests/gpu/cudnn_*.c)))
