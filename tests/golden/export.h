/* export.h: made by tests/golden/export.py with PyTorch; see there. */
#ifndef ST_TESTS_GOLDEN_EXPORT_H
#define ST_TESTS_GOLDEN_EXPORT_H

enum { GOLDEN_SEED = 5, GOLDEN_BATCH = 4, GOLDEN_SEQUENCE = 6, GOLDEN_STEPS = 3, GOLDEN_LAYERS = 2, GOLDEN_HEADS = 2, GOLDEN_MAGNIFIED = 10, GOLDEN_EVALUATED = 100 };

/* Mean losses of a batch. */
static const struct golden_export {
    const char *model;
    double loss;
} golden_exports[] = {
    {"resnet20", 5.363006898942043},
    {"vgg16", 2.6396730103388699},
    {"lstm", 7.6003319099066777},
    {"gpt", 7.7082335547559238},
};

#endif
