/* observers.c: see observers.h. */
#include "cli/observe/observers.h"

#include <stdio.h>

#include "base/mem.h"
#include "cli/train/run.h"

/* -- --record: gradients, or the entries that were selected -------------------------------------------------------- */

bool observers_open_file(struct run *r, struct err *e) {
    const struct arena *a = &r->model.net->arena;
    const struct options *o = &r->options;
    if (!o->record[0]) return true;
    struct record_slice *slice = mem_zalloc(a->slices, sizeof *slice, "the names of the layers");
    for (size_t i = 0; i < a->slices; i++) {
        snprintf(slice[i].name, sizeof slice[i].name, "%.47s", a->slice[i].name);
        slice[i].size = a->slice[i].size;
    }
    const struct record_selection selection = {density_to_k(o->density, r->model.n - r->path.exempts), o->density};
    const struct record_about about = {.n = r->model.n,
                                       .model = options_model(o)->name,
                                       .data = o->data,
                                       .batch = (size_t)(o->batch * o->accumulate),
                                       .slice = slice,
                                       .slices = a->slices,
                                       .device = a->device,
                                       .selected = options_record_selected(o),
                                       .selection = selection};
    bool good = record_open(&r->watch.record, r->comm, o->record, &about, e);
    mem_free(slice);
    return good;
}

/* After an error nothing more is recorded, but the step is completed. */
static bool recording(const struct run *r, bool selected) {
    return r->watch.record.open && options_record_selected(&r->options) == selected &&
           run_due(r, r->options.record_every) && !r->trouble.text[0];
}

static bool gradient_due(const struct run *r) {
    return recording(r, false);
}

static void record_gradient(struct run *r) {
    record_step(&r->watch.record, r->step, r->model.net->arena.grad, &r->trouble);
}

static bool selected_due(const struct run *r) {
    return recording(r, true);
}

/* Dense steps select nothing. */
static void record_selected(struct run *r) {
    const struct exchange_sum *sum = &r->now.sum;
    if (sum->sparse && sum->delivered)
        record_selected_step(&r->watch.record, r->step, r->now.k, sum->delivered, &r->trouble);
}

/* -- --log-xi ------------------------------------------------------------------------------------------------------ */

static bool xi_due(const struct run *r) {
    return r->now.exchange->ops->sparse && run_due(r, r->options.log_xi);
}

static void xi_take(struct run *r) {
    struct gradient_path *p = &r->path;
    xi_before(&r->watch.xi, &p->reducer.store, r->model.net->arena.grad, p->exempt, p->exempts);
}

static void xi_put(struct run *r) {
    r->now.row.xi = xi_after(&r->watch.xi, r->now.k, r->now.sum.sparse);
    r->now.row.xi_denominator = xi_denominator(&r->watch.xi);
}

/* -- --audit: the exact threshold, and what Gaussiank's would let pass --------------------------------------------- */

static bool audit_due(const struct run *r) {
    return r->path.reducer.selector && r->now.exchange->ops->selects && run_due(r, r->options.audit);
}

static void audit_ask(struct run *r) {
    r->path.reducer.selector->audit = true;
}

static void audit_put(struct run *r) {
    struct selector *s = r->path.reducer.selector;
    if (s->stats.audited) {
        r->now.row.exact_threshold = (double)s->stats.exact;
        r->now.row.normal_passes = (double)s->stats.normal_passes;
    }
    r->now.row.global_exact_threshold = (double)r->now.sum.exact_threshold;
    s->audit = false;
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

static const struct observer gradient_observer = {gradient_due, true, {[MOMENT_GRADIENT] = record_gradient}},
                             selected_observer = {selected_due, false, {[MOMENT_AFTER] = record_selected}},
                             xi_observer = {xi_due, true, {[MOMENT_BEFORE] = xi_take, [MOMENT_AFTER] = xi_put}},
                             audit_observer = {
                                 audit_due, false, {[MOMENT_BEGIN] = audit_ask, [MOMENT_AFTER] = audit_put}};
static const struct observer *const observers[] = {&gradient_observer, &slices_observer,   &xi_observer,
                                                   &audit_observer,    &selected_observer, &mllog_observer};
enum { OBSERVERS = sizeof observers / sizeof *observers };

void observers_open(struct run *r) {
    if (r->options.log_slices > 0) slices_open(r);
    if (r->options.log_xi > 0 && r->path.sparse) xi_open(&r->watch.xi, r->comm, r->model.n);
}

void observers_close(struct run *r) {
    record_close(&r->watch.record);
    slices_close(r);
    xi_close(&r->watch.xi);
}

static bool is_due(const struct run *r, size_t observer) {
    return r->now.due >> observer & 1;
}

void observers_begin(struct run *r) {
    r->now.due = 0;
    for (size_t i = 0; i < OBSERVERS; i++) r->now.due |= (unsigned)observers[i]->due(r) << i;
    observe(r, MOMENT_BEGIN);
}

void observe(struct run *r, enum moment moment) {
    for (size_t i = 0; i < OBSERVERS; i++)
        if (is_due(r, i) && observers[i]->at[moment]) observers[i]->at[moment](r);
}

bool observers_leave_gradient(const struct run *r) {
    for (size_t i = 0; i < OBSERVERS; i++)
        if (is_due(r, i) && observers[i]->whole) return false;
    return true;
}
