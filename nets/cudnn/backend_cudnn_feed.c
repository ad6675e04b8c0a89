/* backend_cudnn_feed.c: the way of a batch to the GPU: into page-locked memory, which gives the caller its own memory
 * back at once; from there by a stream of its own, beside the pass before; and at last, in the order of the passes, to
 * where the layers and the loss read it.
 *
 *      host        staging[i].host     staging[i].device      x, numbers, fed, label
 *        --memcpy-->         --upload-->         --copy or kernel-->
 */
#include <string.h>

#include "base/mem.h"
#include "nets/cuda/cuda_images.h"
#include "nets/cudnn/backend_cudnn.h"
#include "nets/frames.h"

enum { ALIGNMENT = 256, BYTES = 256 /* values of a byte */ };

/* Where the parts of a piece begin. */
struct places {
    size_t label[NET_LOSSES_MAX], labelled; /* behind struct cudnn_fed; where labels end */
    size_t number[NET_NUMBERS], cuts, images, end;
};

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static struct places places_of(const struct net_input *input, const struct tensor *shape) {
    struct places p = {.labelled = sizeof(struct cudnn_fed)};
    for (int k = 0; k < NET_LOSSES_MAX; k++) {
        p.label[k] = p.labelled;
        p.labelled += (size_t)input->labels[k] * sizeof(int32_t);
    }
    p.cuts = p.labelled;
    for (int k = 0; k < NET_NUMBERS; k++) {
        p.number[k] = p.cuts;
        p.cuts += (size_t)input->counts[k] * sizeof(int32_t);
    }
    p.cuts = aligned(p.cuts);
    p.images = p.cuts + aligned((size_t)shape->n * sizeof(struct image_cut));
    p.end = p.images + shape->floats * sizeof(float);
    return p;
}

void cudnn_feed_open(struct cudnn_feed *feed) {
    cuda_stream();
    CUDA_CALL(cudaStreamCreateWithFlags(&feed->stream, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) {
        CUDA_CALL(cudaEventCreateWithFlags(&feed->staging[i].uploaded, cudaEventDisableTiming));
        CUDA_CALL(cudaEventCreateWithFlags(&feed->staging[i].taken, cudaEventDisableTiming));
    }
}

static void release(struct cudnn_feed *feed) {
    for (int i = 0; i < 2; i++) {
        mem_pinned_free(feed->staging[i].host);
        cuda_free(feed->staging[i].device);
    }
    cuda_free(feed->fed);
}

void cudnn_feed_close(struct cudnn_feed *feed) {
    CUDA_CALL(cudaStreamSynchronize(feed->stream));
    for (int i = 0; i < 2; i++) {
        CUDA_CALL(cudaEventDestroy(feed->staging[i].uploaded));
        CUDA_CALL(cudaEventDestroy(feed->staging[i].taken));
    }
    CUDA_CALL(cudaStreamDestroy(feed->stream));
    release(feed);
    cuda_free(feed->table);
}

/* Memory for batches like this; those of a net are alike, so this happens once. */
static void make_room(struct cudnn_feed *feed, const struct places *at, const struct net_input *input) {
    if (feed->bytes >= at->end && memcmp(feed->labels, input->labels, sizeof feed->labels) == 0) return;
    CUDA_CALL(cudaStreamSynchronize(feed->stream));
    cuda_wait();
    release(feed);
    for (int i = 0; i < 2; i++) {
        feed->staging[i].host = mem_pinned_alloc(at->end, 1, "a batch on its way to the GPU");
        feed->staging[i].device = cuda_alloc(at->end, "a batch that has come to the GPU");
    }
    feed->fed = cuda_alloc(at->labelled, "the labels of a batch");
    for (int k = 0; k < NET_LOSSES_MAX; k++) {
        feed->label[k] = (int32_t *)(void *)((char *)feed->fed + at->label[k]);
        feed->labels[k] = input->labels[k];
    }
    feed->bytes = at->end;
}

static void need_table(struct cudnn_feed *feed, const float *table, int channels) {
    size_t bytes = (size_t)channels * BYTES * sizeof *table;
    if (feed->uploaded == table) return;
    if (!feed->table) feed->table = cuda_alloc(bytes, "the values of bytes");
    cuda_upload(feed->table, table, bytes);
    feed->uploaded = table;
}

/* What is copied as it is; NULL: bytes, which become floats on the device. */
static const void *plain(const struct net_input *input) {
    return input->token ? (const void *)input->token : (const void *)input->x;
}

static struct cudnn_fed fed_of(const struct net_input *input) {
    struct cudnn_fed fed = {.step = {(uint32_t)input->step, (uint32_t)(input->step >> 32)}};
    for (int k = 0; k < NET_LOSSES_MAX; k++)
        fed.loss[k] = (struct cuda_loss_fed){input->over[k], k == 0 ? input->valid : input->labels[k]};
    return fed;
}

static void put(char *to, const int32_t *from, int n) {
    if (n > 0) memcpy(to, from, (size_t)n * sizeof *from);
}

/* Of the pass: those of all passes but of utterances, which differ in length. */
static size_t floats_in(const struct net_input *input, const struct tensor *shape) {
    if (!shape->frames) return shape->floats;
    return (size_t)shape->n * (size_t)shape->c * (size_t)shape->h * (size_t)frames_rounded(input->frames);
}

/* Puts the batch into a piece of the host's; returns how many bytes of images or tokens. */
static size_t fill(char *host, const struct places *at, const struct net_input *input, const struct tensor *shape) {
    const size_t n = (size_t)shape->n, elements = shape->floats; /* the input is canonical: no padding */
    const struct cudnn_fed fed = fed_of(input);
    memcpy(host, &fed, sizeof fed);
    for (int k = 0; k < NET_LOSSES_MAX; k++) put(host + at->label[k], input->label[k], input->labels[k]);
    for (int k = 0; k < NET_NUMBERS; k++) put(host + at->number[k], input->numbers[k], input->counts[k]);
    if (shape->frames) {
        frames_of_input(input, shape, (float *)(void *)(host + at->images));
        return floats_in(input, shape) * sizeof *input->x;
    }
    if (plain(input)) { /* a token is as large as a float */
        memcpy(host + at->images, plain(input), elements * sizeof *input->x);
        return elements * sizeof *input->x;
    }
    memcpy(host + at->cuts, input->bytes->cut, n * sizeof *input->bytes->cut);
    memcpy(host + at->images, input->bytes->pixels, elements);
    return elements;
}

/* From the device's piece to the places where this pass reads. */
static void take(const struct cudnn_feed *feed, const struct cudnn_staging *s, const struct places *at,
                 const struct net_input *input, const struct tensor *shape, float *x,
                 float *const numbers[NET_NUMBERS]) {
    const struct cuda_shape images = cudnn_shape(shape);
    cudaStream_t stream = cuda_stream();
    CUDA_GIVE(cudaMemcpyAsync(feed->fed, s->device, at->labelled, cudaMemcpyDeviceToDevice, stream));
    for (int k = 0; k < NET_NUMBERS; k++)
        if (input->counts[k] > 0)
            CUDA_GIVE(cudaMemcpyAsync(numbers[k], s->device + at->number[k], (size_t)input->counts[k] * sizeof(int32_t),
                                      cudaMemcpyDeviceToDevice, stream));
    if (plain(input))
        CUDA_GIVE(cudaMemcpyAsync(x, s->device + at->images, floats_in(input, shape) * sizeof *x,
                                  cudaMemcpyDeviceToDevice, stream));
    else
        cuda_images(&images, (const uint8_t *)s->device + at->images,
                    (const struct image_cut *)(const void *)(s->device + at->cuts), feed->table, x);
}

/* Events that were never recorded do not hold anybody up. */
void cudnn_feed(void *backend, const struct net_input *input, const struct tensor *shape, float *x,
                float *const numbers[NET_NUMBERS]) {
    struct cudnn_feed *feed = &((struct cudnn_backend *)backend)->feed;
    const struct places at = places_of(input, shape);
    cudaStream_t stream = cuda_stream();
    make_room(feed, &at, input);
    feed->label_stride = input->label_stride;
    if (!plain(input)) need_table(feed, input->bytes->table, shape->c);
    struct cudnn_staging *s = &feed->staging[feed->next++ % 2];
    CUDA_CALL(cudaEventSynchronize(s->uploaded)); /* waits only where two batches are on their way already */
    const size_t bytes = fill(s->host, &at, input, shape);
    CUDA_CALL(cudaStreamWaitEvent(feed->stream, s->taken, 0));
    CUDA_CALL(cudaMemcpyAsync(s->device, s->host, at.images + bytes, cudaMemcpyHostToDevice, feed->stream));
    CUDA_CALL(cudaEventRecord(s->uploaded, feed->stream));
    CUDA_CALL(cudaStreamWaitEvent(stream, s->uploaded, 0));
    take(feed, s, &at, input, shape, x, numbers);
    CUDA_CALL(cudaEventRecord(s->taken, stream));
}
