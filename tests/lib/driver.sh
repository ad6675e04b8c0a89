# shellcheck shell=sh
# driver.sh: sourced by the tests of plugins, which are loaded only where there is a CUDA driver.

# empty_driver: from here on every process finds a libcuda.so.1, with nothing in it
empty_driver() {
    mkdir -p "$W/driver"
    echo 'int nothing;' | cc -shared -fPIC -x c - -o "$W/driver/libcuda.so.1"
    export LD_LIBRARY_PATH="$W/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}
