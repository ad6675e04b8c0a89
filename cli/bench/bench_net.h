/* bench_net.h: `sparsetrain bench net`: how many images, words or utterances a second this machine trains on. Also what
 * its parts share:
 *
 *        bench_net.c          the verb: opens a net for each batch size, runs its steps
 *        bench_net_options.c  the command line
 *        bench_net_batch.c    the random images, words or utterances
 *        bench_net_print.c    table, JSON
 */
#ifndef ST_CLI_BENCH_NET_H
#define ST_CLI_BENCH_NET_H

#include "base/device/device.h"
#include "base/json.h"
#include "base/option.h"
#include "data/speech/spectrogram.h"
#include "nets/net.h"
#include "nets/optimisers/optimiser.h"

/* Forward, backward and optimiser step on random input, one process. argv[0] is the word "net", options follow. Returns
 * an exit status. */
int bench_net(int argc, char **argv);

/* -- what is asked (bench_net_options.c) --------------------------------------------------------------------------- */
enum { BENCH_NET_FRAMES = 270, BENCH_NET_LABELS = 24 }; /* of an utterance of AN4, in the mean */

struct bench_net_request {
    const struct model_ops *model;
    const char *preset;                 /* NULL: none */
    const struct model_reference *like; /* the preset's, or the model's */
    int classes;                        /* that it is made for */
    int model_number, precision_number;
    struct option_numbers batch;
    int hidden, sequence;       /* of a model of words; 0: as its reference; else they stay 0 */
    int layers, frames;         /* of one of speech; likewise */
    int steps, repeat, threads; /* steps of a round, rounds, threads of the backend */
    const char *device_name;
    const struct device_ops *device;
    enum precision precision;
    bool json, kernels;
};

/* False: one line in *e. The device is yet to be found. */
bool bench_net_parse(struct bench_net_request *r, int argc, char **argv, struct err *e);
extern const struct option_table net_options;

/* -- one batch size ------------------------------------------------------------------------------------------------ */
struct bench_net_case {
    struct net *net;
    struct optimiser optimiser;
    float *x;              /* [batch][3][32][32]; NULL where the net takes bytes; or utterances */
    uint8_t *pixels;       /* [batch][3][32][32] */
    struct image_cut *cut; /* [batch] */
    float *table;          /* [3][256] */
    int32_t *token;        /* [rows] words in place of images; else NULL */
    int32_t *y;            /* [rows] images, or words that follow the others; of pairs [batch][chosen], of
                            * speech [batch][BENCH_NET_LABELS] */
    int32_t *numbers[NET_NUMBERS], *next; /* of pairs, lengths of speech; else NULL */
    double *rate;                         /* [repeat] rows/s */
    struct spectrogram *spectrogram;      /* of speech in a build with FFTW, else NULL */
    int16_t *sample;                      /* of an utterance, noise */
    double *feature;                      /* [repeat] making the features of an utterance [s] */
    double lr;
    double first_loss, loss; /* mean of the batch, at the first step and the last [nats] */
};

/* What its net trains on, and of speech, in a build with FFTW, a recording of noise (bench_net_batch.c). */
void bench_net_batch_open(struct bench_net_case *b, int repeat);
void bench_net_batch_close(struct bench_net_case *b);

/* -- output (bench_net_print.c) ------------------------------------------------------------------------------------ */
/* What was measured, as members of an object. */
void bench_net_about(const struct bench_net_case *b, const struct bench_net_request *r, struct json *j);
void bench_net_print_head(const struct bench_net_request *r);
/* Returns the number of wrong results: 1 when training has not made the loss smaller. */
int bench_net_print_row(const struct bench_net_case *b, const struct bench_net_request *r);
/* Of --kernels, above the calls of a batch size. */
void bench_net_print_kernels_head(const struct bench_net_case *b, const struct bench_net_request *r);
/* On stderr, where passes should have been recorded as CUDA graphs and could not be: not an error, since it is only
 * slower, but the row must not be taken for one with graphs. */
void bench_net_say_plain_passes(const struct bench_net_case *b);

#endif
