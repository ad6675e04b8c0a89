/* nets_golden_vgg16.c: three training steps of VGG-16 against golden values of PyTorch: nets_golden_images.h.
 * devices: cuda */
/* long: more than ten seconds at one P */
#include "tests/golden/vgg16.h"
#include "tests/lib/nets_golden_images.h"

int main(void) {
    return golden_main();
}
