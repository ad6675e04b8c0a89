/* nets_golden.c: ten training steps of ResNet-20 against golden values of PyTorch: nets_golden_images.h.
 * devices: cuda */
#include "tests/golden/resnet20.h"
#include "tests/lib/nets_golden_images.h"

int main(void) {
    return golden_main();
}
