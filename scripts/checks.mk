# checks.mk: included by the Makefile: what is built for checks alone that take their time. A change here builds nothing anew
# that is not of these.

# -- fuzz targets (scripts/fuzz.sh): what they are about is compiled by clang for libFuzzer, the rest is the plain build's ------
CLANG        ?= clang
fuzz_targets := wire $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_about   := $(call sources_of,base) $(wildcard comm/wire/*.c topk/sparse.c) \
                $(wildcard data/archive.c data/gzip.c data/text/text_reader.c data/text/vocabulary_index.c data/pairs/wordpiece.c data/pairs/pairs_cache.c data/pairs/pairs_layout.c data/pairs/masked.c data/speech/wav.c data/speech/transcript.c nets/optimisers/schedule.c comm/density.c) \
                $(wildcard cli/checkpoint/container*.c cli/checkpoint/checkpoint*.c cli/export/model_layout.c cli/gradients/record*.c cli/gradients/profile*.c cli/bench/overlap.c \
                cli/options/options*.c cli/log/log_*.c)
fuzz_flags    = -std=c11 -D_GNU_SOURCE -DST_FUZZ -DST_SANITIZE -DST_VERSION='"$(VERSION)"' -DST_COMMIT='"fuzz"' -DST_CFLAGS='""' -I. \
                -O1 -g -fno-omit-frame-pointer -ffp-contract=off -Wno-unknown-pragmas -fsanitize=address,undefined -fno-sanitize-recover=all
fuzz_object   = $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(1))
$(BUILD)/fuzz/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,FUZ,$@)$(CLANG) $(fuzz_flags) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@
$(BUILD)/fuzz/libabout.a: $(call fuzz_object,$(fuzz_about))
	@rm -f $@
	$(call quiet,AR,$@)ar rcs $@ $^
fuzz_rest = $(filter-out $(BUILD)/obj/cli/main.o,$(call objects,$(filter-out $(fuzz_about),$(sources))))
$(BUILD)/fuzz/librest.a: $$(fuzz_rest)
	@rm -f $@
	$(call quiet,AR,$@)ar rcs $@ $^
$(addprefix $(BUILD)/fuzz/,$(filter-out wire,$(fuzz_targets))): $(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/fuzz_%.o
$(BUILD)/fuzz/wire: $(BUILD)/fuzz/obj/tests/fuzz/comm_fuzz_wire.o
$(addprefix $(BUILD)/fuzz/,$(fuzz_targets)): $(BUILD)/fuzz/obj/tests/lib/fuzzfiles.o $(BUILD)/fuzz/libabout.a $(BUILD)/fuzz/librest.a
	$(call quiet,LD,$@)$(CLANG) -fsanitize=fuzzer,address,undefined $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
	    $(libs_nets) $(libs_data) $(libs_comm) $(libs_base) $(shell $(CC) -print-file-name=libgomp.so) \
	    $(if $(wildcard $(BUILD)/obj/topk/cpu/kernels.gcno),$(shell $(CC) -print-file-name=libgcov.a)) -o $@
.PHONY: fuzz-targets list-fuzz-targets
fuzz-targets: $(addprefix $(BUILD)/fuzz/,$(fuzz_targets))
list-fuzz-targets:
	@printf '%s\n' $(sort $(fuzz_targets))

# -- campaigns (docs/soak.md) ----------------------------------------------------------------------------------------------
# Loaded before the program, by tests too: file-system calls of it fail.
$(BUILD)/tests/libfailing.so: tests/preload/failing.c
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared $(warnings) $< -ldl -lpthread -o $@
ifeq ($(shell uname),Linux)
tests: $(if $(SAN),,$(BUILD)/tests/libfailing.so)
endif
.PHONY: soak coverage
soak: tests
	BUILD='$(BUILD)' sh scripts/soak.sh $(PART)
coverage:
	BUILD='$(BUILD)' sh scripts/coverage.sh $(ONLY)
