# hostcuda.mk: the stand-in for CUDA in host memory; included by the Makefile. It needs the headers of the CUDA toolkit
# in $(CUDA_HOME)/include, g++, and no GPU.
CUDA_HOME ?= /usr/local/cuda
hostcuda_optimise := $(if $(SAN),$(optimise),-O2 -g)
hostcuda_cxxflags := -std=c++17 -DST_HOSTCUDA -I. -isystem $(CUDA_HOME)/include -fPIC -ffp-contract=off $(hostcuda_optimise) \
                     -Wall -Wextra -Wshadow $(if $(filter 1,$(WERROR)),-Werror) -Wno-unknown-pragmas -MMD -MP
hostcuda_cflags    = $(cflags) -isystem $(CUDA_HOME)/include -fPIC
hostcuda_parts    := memory stream event copy capture runtime
hostcuda_objects  := $(hostcuda_parts:%=$(BUILD)/hostcuda/tests/hostcuda/%.o) $(BUILD)/hostcuda/tests/hostcuda/emulate.o
hostcuda_tests    := $(BUILD)/tests/hostcuda_kernels $(BUILD)/tests/hostcuda_runtime

# Everything that is compiled for the stand-in lies below $(BUILD)/hostcuda: kernels, C files of the plugin, its own.
$(BUILD)/hostcuda/%.o: %.cu Makefile
	@mkdir -p $(@D)
	$(call quiet,CXX,$@)$(CXX) -x c++ $(hostcuda_cxxflags) -c $< -o $@
$(BUILD)/hostcuda/%.o: %.cc Makefile
	@mkdir -p $(@D)
	$(call quiet,CXX,$@)$(CXX) $(hostcuda_cxxflags) -c $< -o $@
$(BUILD)/hostcuda/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call quiet,CC,$@)$(CC) $(hostcuda_cflags) -c $< -o $@

$(hostcuda_tests): $(BUILD)/tests/hostcuda_%: $(BUILD)/hostcuda/tests/hostcuda/selftest_%.o \
                   $(BUILD)/hostcuda/tests/hostcuda/selftest.o $(hostcuda_objects)
	@mkdir -p $(@D)
	$(call quiet,LD,$@)$(CXX) $(ldflags) $^ -lcmocka -lpthread -o $@

-include $(wildcard $(BUILD)/hostcuda/*/*.d $(BUILD)/hostcuda/tests/hostcuda/*.d)
