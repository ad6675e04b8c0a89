/* backend_onednn_step.c: primitives with their arguments, and matrix products; see backend_onednn.h. */
#include <string.h>

#include "base/mem.h"
#include "nets/onednn/backend_onednn.h"

dnnl_format_tag_t onednn_tag(enum cpu_layout layout) {
    switch (layout) {
    case CPU_NCHW8C:
        return dnnl_nChw8c;
    case CPU_NCHW16C:
        return dnnl_nChw16c;
    case CPU_NHWC:
        return dnnl_nhwc;
    default:
        return dnnl_nchw;
    }
}

bool onednn_layout_of(shim_desc desc, const dnnl_dims_t size, enum cpu_layout *layout) {
    static const enum cpu_layout all[] = {CPU_NCHW16C, CPU_NCHW8C, CPU_NHWC, CPU_NCHW};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        shim_own_desc own;
        shim_desc_open(&own, 4, size, onednn_tag(all[i]));
        bool same = dnnl_memory_desc_equal(desc, shim_desc_of(&own)) != 0;
        shim_desc_close(&own);
        *layout = all[i];
        if (same) return true;
    }
    return false;
}

void onednn_need(struct onednn_buffer *b, size_t bytes, const char *what) {
    if (bytes <= b->bytes) return;
    mem_free(b->at);
    b->at = mem_alloc(bytes, 1, what);
    b->bytes = bytes;
}

void onednn_need_for(struct onednn_buffer *b, shim_desc desc, const char *what) {
    onednn_need(b, dnnl_memory_desc_get_size(desc), what);
}

static void need_scratch(struct onednn *b, size_t bytes) {
    if (bytes <= b->scratch_bytes) return;
    mem_free(b->scratch);
    b->scratch = mem_alloc(bytes, 1, "oneDNN's scratchpad");
    b->scratch_bytes = bytes;
}

const char *onednn_name(dnnl_primitive_desc_t made) {
    const char *name = "";
    ONEDNN(dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, &name));
    return name;
}

void onednn_step_open(struct onednn *b, struct onednn_step *s, dnnl_primitive_desc_t made) {
    *s = (struct onednn_step){0};
    ONEDNN(dnnl_primitive_create(&s->primitive, made));
    shim_desc scratch = dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
    size_t bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
    if (bytes) { /* always the first argument where there is one */
        need_scratch(b, bytes);
        onednn_step_arg(b, s, DNNL_ARG_SCRATCHPAD, scratch);
    }
}

/* Scratchpads of the caller's, as in onednn.attr; adds: the result is added to what is there. */
static dnnl_primitive_attr_t attributes_of(bool adds) {
    dnnl_primitive_attr_t attr;
    ONEDNN(dnnl_primitive_attr_create(&attr));
    ONEDNN(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    if (adds) {
        dnnl_post_ops_t after;
        ONEDNN(dnnl_post_ops_create(&after));
        shim_append_sum(after);
        ONEDNN(dnnl_primitive_attr_set_post_ops(attr, after)); /* copies it */
        ONEDNN(dnnl_post_ops_destroy(after));
    }
    return attr;
}

void onednn_reorder_open(struct onednn *b, struct onednn_step *s, shim_desc from, shim_desc to, bool adds) {
    dnnl_primitive_desc_t made;
    dnnl_primitive_attr_t attr = attributes_of(adds);
    ONEDNN(dnnl_reorder_primitive_desc_create(&made, from, b->engine, to, b->engine, attr));
    ONEDNN(dnnl_primitive_attr_destroy(attr));
    onednn_step_open(b, s, made);
    onednn_step_arg(b, s, DNNL_ARG_FROM, from);
    onednn_step_arg(b, s, DNNL_ARG_TO, to);
    ONEDNN(dnnl_primitive_desc_destroy(made));
}

void onednn_step_arg(struct onednn *b, struct onednn_step *s, int what, shim_desc desc) {
    if (s->args == ONEDNN_ARGS_MAX) die("a oneDNN primitive with more than %d arguments", ONEDNN_ARGS_MAX);
    dnnl_exec_arg_t *arg = &s->arg[s->args++];
    arg->arg = what;
    ONEDNN(dnnl_memory_create(&arg->memory, desc, b->engine, DNNL_MEMORY_NONE));
}

static void place(struct onednn_step *s, int i, void *at) {
    if (s->at[i] == at) return;
    ONEDNN(dnnl_memory_set_data_handle(s->arg[i].memory, at));
    s->at[i] = at;
}

void onednn_step_run(struct onednn *b, struct onednn_step *s, const void *const *arg) {
    bool scratch = s->arg[0].arg == DNNL_ARG_SCRATCHPAD;
    if (scratch) place(s, 0, b->scratch);
    for (int i = scratch ? 1 : 0; i < s->args; i++) {
        void *at;
        memcpy(&at, arg++, sizeof at); /* the library's arguments know no const */
        place(s, i, at);
    }
    ONEDNN(dnnl_primitive_execute(s->primitive, b->stream, s->args, s->arg));
}

void onednn_product_within(bool turn_a, bool turn_b, size_t m, size_t n, size_t k, const float *A, size_t a_row,
                           const float *B, size_t b_row, float beta, float *C, size_t c_row) {
    ONEDNN(dnnl_sgemm(turn_a ? 'T' : 'N', turn_b ? 'T' : 'N', (dnnl_dim_t)m, (dnnl_dim_t)n, (dnnl_dim_t)k, 1, A,
                      (dnnl_dim_t)a_row, B, (dnnl_dim_t)b_row, beta, C, (dnnl_dim_t)c_row));
}

void onednn_product(bool turn_a, bool turn_b, size_t m, size_t n, size_t k, const float *A, const float *B, float beta,
                    float *C) {
    onednn_product_within(turn_a, turn_b, m, n, k, A, turn_a ? m : k, B, turn_b ? k : n, beta, C, n);
}

/* The primitive for C [m][n] from A [m][k] and a B of any layout. */
static void open_product(struct onednn *b, struct onednn_packed *p, const dnnl_dims_t a_size, const dnnl_dims_t b_size,
                         const dnnl_dims_t c_size, shim_desc B, const_dnnl_primitive_attr_t attr) {
    shim_own_desc a, any, c;
    shim_desc_open(&a, 2, a_size, dnnl_ab);
    shim_desc_open(&any, 2, b_size, dnnl_format_tag_any);
    shim_desc_open(&c, 2, c_size, dnnl_ab);
    dnnl_primitive_desc_t made;
    shim_product(&made, b->engine, shim_desc_of(&a), shim_desc_of(&any), shim_desc_of(&c), attr);
    shim_desc copy = dnnl_primitive_desc_query_md(made, dnnl_query_weights_md, 0);
    p->bytes = dnnl_memory_desc_get_size(copy);
    onednn_step_open(b, &p->product, made);
    onednn_step_arg(b, &p->product, DNNL_ARG_SRC, shim_desc_of(&a));
    onednn_step_arg(b, &p->product, DNNL_ARG_WEIGHTS, copy);
    onednn_step_arg(b, &p->product, DNNL_ARG_DST, shim_desc_of(&c));
    onednn_reorder_open(b, &p->take, B, copy, false);
    ONEDNN(dnnl_primitive_desc_destroy(made));
    shim_desc_close(&a);
    shim_desc_close(&any);
    shim_desc_close(&c);
}

void onednn_packed_open(struct onednn *b, struct onednn_packed *p, bool turn_b, size_t m, size_t n, size_t k,
                        bool adds) {
    const dnnl_dim_t M = (dnnl_dim_t)m, N = (dnnl_dim_t)n, K = (dnnl_dim_t)k;
    const dnnl_dims_t a_size = {M, K}, b_size = {K, N}, c_size = {M, N};
    dnnl_primitive_attr_t attr = attributes_of(adds);
    shim_own_desc B;
    shim_desc_open(&B, 2, b_size, turn_b ? dnnl_ba : dnnl_ab);
    open_product(b, p, a_size, b_size, c_size, shim_desc_of(&B), attr);
    shim_desc_close(&B);
    ONEDNN(dnnl_primitive_attr_destroy(attr));
}

void onednn_packed_take(struct onednn *b, struct onednn_packed *p, const float *B, float *copy) {
    onednn_step_run(b, &p->take, (const void *[]){B, copy});
}

void onednn_packed_run(struct onednn *b, struct onednn_packed *p, const float *A, const float *copy, float *C) {
    onednn_step_run(b, &p->product, (const void *[]){A, copy, C});
}

void onednn_packed_close(struct onednn_packed *p) {
    onednn_step_close(&p->take);
    onednn_step_close(&p->product);
}

void onednn_step_close(struct onednn_step *s) {
    if (!s->primitive) return;
    for (int i = 0; i < s->args; i++) ONEDNN(dnnl_memory_destroy(s->arg[i].memory));
    ONEDNN(dnnl_primitive_destroy(s->primitive));
    *s = (struct onednn_step){0};
}
