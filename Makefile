# sparsetrain. Targets: all (default), check, bench, lint, format, install, uninstall, clean.
# Knobs:  V=1 (show commands)  BUILD=dir  CC=cc  MPI=auto|ompi-c|mpich  SAN=address,undefined  CUDA=auto|0|1  WERROR=0|1  PREFIX= DESTDIR=

BUILD   ?= build
PREFIX  ?= /usr/local
MPI     ?= auto
SAN     ?=
CUDA    ?= auto
WERROR  ?= 1
VERSION := 0.1.0

# A build with sanitizers gets a folder of its own, so that it never mixes with the plain one.
comma   := ,
ifneq ($(SAN),)
override BUILD := $(BUILD)/san-$(subst $(comma),-,$(SAN))
endif

modules := base data topk comm nets cli
sources := $(foreach m,$(modules),$(wildcard $(m)/*.c))
objects  = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
tests   := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/base_*.c tests/data_*.c tests/topk_*.c tests/comm_*.c tests/nets_*.c tests/cli_*.c))

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
has_dnnl := $(call links,oneapi/dnnl/dnnl.h,-ldnnl)
has_cmocka := $(call have,cmocka)
nvcc     := $(if $(filter 0,$(CUDA)),,$(shell command -v nvcc 2>/dev/null))
cuda_sources := $(wildcard */*.cu nets/backend_cudnn.c)

missing  := $(if $(filter found,$(has_mpi)),,libopenmpi-dev) $(if $(filter found,$(has_png)),,libpng-dev) \
            $(if $(filter found,$(has_zlib)),,zlib1g-dev) $(if $(filter found,$(has_dnnl)),,libdnnl-dev)

# -- flags ---------------------------------------------------------------------------------------------------
warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            $(if $(filter 1,$(WERROR)),-Werror)
optimise := $(if $(SAN),-O1 -g -fno-omit-frame-pointer -fsanitize=$(SAN) -fno-sanitize-recover=all -DST_SANITIZE,-O3 -g)
CFLAGS   ?=
cflags   := -std=c11 -D_GNU_SOURCE -I. -fopenmp -ffp-contract=off $(optimise) $(warnings) -MMD -MP \
            $(shell pkg-config --cflags libpng zlib 2>/dev/null) $(CFLAGS)
mpi_cflags := $(if $(mpi_pkg),$(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(mpi_pkg) 2>/dev/null)))
ldflags  := -fopenmp -rdynamic $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
libs_base := $(shell pkg-config --libs zlib 2>/dev/null || echo -lz) -lm -lpthread -ldl
libs_data := $(shell pkg-config --libs libpng 2>/dev/null || echo -lpng)
libs_comm := $(if $(mpi_pkg),$(shell pkg-config --libs $(mpi_pkg) 2>/dev/null))
libs_nets := -ldnnl

quiet     = $(if $(filter 1,$(V)),,@printf '  %-3s %s\n' $(1) $(2);)

.PHONY: all programs check bench lint format install uninstall clean report cuda
.DELETE_ON_ERROR:
.SECONDARY:
all: report programs
programs: $(BUILD)/sparsetrain cuda

report:
	@echo "MPI $(has_mpi) ($(or $(mpi_pkg),none))  libpng $(has_png)  zlib $(has_zlib)  oneDNN $(has_dnnl)  cmocka $(has_cmocka)  nvcc $(if $(nvcc),found,missing)"
	@test -z "$(strip $(missing))" || { echo "missing: install $(strip $(missing)) (sh scripts/deps.sh does it on Debian and Ubuntu)" >&2; exit 1; }

# -- rules ---------------------------------------------------------------------------------------------------
$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(cflags) -c $< -o $@
$(call objects,$(wildcard comm/transport_mpi*.c)): cflags += $(mpi_cflags)
$(BUILD)/obj/base/plugin.o $(BUILD)/obj/cli/version.o: cflags += -DST_VERSION='"$(VERSION)"' -DST_COMMIT='"$(commit)"' -DST_CFLAGS='"$(optimise)"'
commit := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)

# version.o is made again when the commit changes
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(commit)' | cmp -s - $@ || echo '$(commit)' > $@
$(BUILD)/obj/cli/version.o: $(BUILD)/commit
.PHONY: FORCE
FORCE:

define module_rule
$(BUILD)/lib$(1).a: $(call objects,$(wildcard $(1)/*.c))
	@rm -f $$@
	$$(call quiet,AR,$$@)ar rcs $$@ $$^
endef
$(foreach m,$(filter-out cli,$(modules)),$(eval $(call module_rule,$(m))))

$(BUILD)/sparsetrain: $(call objects,$(wildcard cli/*.c)) $(foreach m,data nets comm topk base,$(BUILD)/lib$(m).a)
	$(call quiet,LD,$@)$(CC) $(ldflags) $^ $(libs_nets) $(libs_data) $(libs_comm) $(libs_base) -o $@

# A test links only what its module may include: the rule of the folders, kept by the linker.
libs_of_base := base
libs_of_data := data base
libs_of_topk := topk base
libs_of_comm := comm topk base
libs_of_nets := nets base
libs_of_cli  := data nets comm topk base
module_of = $(firstword $(subst _, ,$(notdir $(1))))
cli_parts = $(filter-out $(BUILD)/obj/cli/main.o,$(call objects,$(wildcard cli/*.c)))
.SECONDEXPANSION:
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $$(foreach m,$$(libs_of_$$(call module_of,$$*)),$(BUILD)/lib$$(m).a) \
                  $$(if $$(filter cli,$$(call module_of,$$*)),$$(cli_parts))
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) $(ldflags) $(filter %.o,$^) $(filter %.a,$^) $(libs_nets) $(libs_data) $(libs_comm) $(libs_base) -lcmocka -o $@

# Loaded before the program by the test that kills it in the middle of a write.
$(BUILD)/tests/libcrash.so: tests/crashing.c
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared $(warnings) $< -ldl -o $@

# -- CUDA plugin: its sources come with the CUDA backend; until then the hook only reports -----------------------
cuda:
ifneq ($(nvcc),)
	@$(if $(strip $(cuda_sources)),$(MAKE) --no-print-directory $(BUILD)/libsparsetrain_cuda.so,echo "CUDA: nvcc found; this version has no CUDA sources to build")
endif

# -- checks --------------------------------------------------------------------------------------------------
check: programs $(tests) $(if $(SAN),,$(BUILD)/tests/libcrash.so)
	BUILD='$(BUILD)' SAN='$(SAN)' sh tests/run.sh $(ONLY)
bench: programs
	BUILD='$(BUILD)' sh scripts/bench.sh
lint:
	sh scripts/lint.sh
format:
	clang-format -i $(wildcard */*.c */*.h)

# -- installation --------------------------------------------------------------------------------------------
bindir = $(DESTDIR)$(PREFIX)/bin
mandir = $(DESTDIR)$(PREFIX)/share/man/man1
docdir = $(DESTDIR)$(PREFIX)/share/doc/sparsetrain
install: programs
	install -d $(bindir) $(mandir) $(docdir)
	install -m 755 $(BUILD)/sparsetrain $(bindir)/sparsetrain
	$(BUILD)/sparsetrain man > $(mandir)/sparsetrain.1
	install -m 644 README.md LICENSE CITATION.cff CHANGELOG.md $(docdir)
uninstall:
	rm -f $(bindir)/sparsetrain $(mandir)/sparsetrain.1
	rm -rf $(docdir)
clean:
	rm -rf $(BUILD)

-include $(patsubst %.o,%.d,$(call objects,$(sources) $(wildcard tests/*.c)))
