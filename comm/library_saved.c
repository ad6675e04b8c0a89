/* library_saved.c: see library_saved.h. Saved bytes are: the head; its settings as text; the residual; each piece of
 * the exchange with its length before it. All of the machine's own byte order, which `magic` shows. */
#include "comm/library_saved.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

/* settings: a line "name=value" for all that the next steps depend on and that saved bytes must agree in. The density
 * and its maximum are none of these, nor is the device. */
enum { SETTINGS_MAX = 2048 };

struct saved_head {
    uint64_t magic, hash; /* hash: of all bytes, itself taken as 0 */
    uint64_t n, steps;
    int32_t rank, size;
    double density;
    uint64_t settings; /* bytes of them */
};
static const uint64_t saved_magic = 0x3330717053745300u; /* the last digits count formats */

/* -- settings ------------------------------------------------------------------------------------------------------ */
__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format, ...) {
    size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    int more = vsnprintf(text + used, SETTINGS_MAX - used, format, values);
    va_end(values);
    if (more < 0 || (size_t)more >= SETTINGS_MAX - used) die("the settings of an exchange are too long to be saved");
}

static void add_own(const sparsetrain *x, char *text) {
    const struct library_options *o = &x->options;
    const struct option_values all = library_values(o);
    const struct selector_ops *select = x->reducer.selector ? x->reducer.selector->ops : NULL;
    char value[OPTION_TEXT_MAX];
    for (size_t i = 0; i < all.rows; i++) {
        if (!exchange_reads(o->ops, select, all.row[i].name)) continue;
        option_value(&all.row[i], all.base, value);
        add(text, "%s=%s\n", all.row[i].name, value);
    }
}

static void settings_of(const sparsetrain *x, char text[SETTINGS_MAX]) {
    const struct library_options *o = &x->options;
    text[0] = '\0';
    add(text, "algorithm=%s\n", o->ops->name);
    if (x->reducer.selector) add(text, "select=%s\n", x->reducer.selector->ops->name);
    add(text, "wire=%s\nseed=%llu\nbucket-bytes=%zu\nranks-per-node=%zu\n", o->wire->name, (unsigned long long)o->seed,
        o->bucket_bytes, o->ranks_per_node);
    add_own(x, text);
    add(text, "groups=%zu of checksum %08llx\n", x->groups,
        (unsigned long long)(hash64(0, x->group, x->groups * sizeof *x->group) >> 32));
    add(text, "slices=%zu of checksum %08llx\n", x->slices,
        (unsigned long long)(hash64(0, x->slice, x->slices * sizeof *x->slice) >> 32));
}

/* Names the first line of two texts that differs. */
static bool differs(const char *saved, const char *own, struct err *e) {
    size_t line = 0;
    for (size_t i = 0; saved[i] == own[i]; i++)
        if (saved[i] == '\n') line = i + 1;
    saved += line, own += line;
    return err_set(e, "what was saved has %.*s, this exchange %.*s", (int)strcspn(saved, "\n"), saved,
                   (int)strcspn(own, "\n"), own);
}

/* -- save ---------------------------------------------------------------------------------------------------------- */
static struct saved_head head_of(const sparsetrain *x, const char *settings) {
    return (struct saved_head){.magic = saved_magic,
                               .n = x->n,
                               .steps = x->steps,
                               .rank = x->comm->rank,
                               .size = x->comm->size,
                               .density = x->density,
                               .settings = strlen(settings)};
}

static uint64_t hash_of(struct saved_head h, const char *rest, size_t count) {
    h.hash = 0;
    return hash64(hash64(0, &h, sizeof h), rest, count);
}

static void put(struct saving *s, const void *bytes, size_t count) {
    if (s->out && count > 0) memcpy(s->out + s->at, bytes, count);
    s->at += count;
}

/* Residual and pieces, to s->out, or counted. */
static void save_body(struct saving *s) {
    sparsetrain *x = s->x;
    struct store *store = &x->reducer.store;
    void *memory;
    size_t bytes;
    if (store->acc) {
        if (s->out) store->ops->read(store, 0, x->n, (float *)(void *)(s->out + s->at));
        s->at += x->n * sizeof(float);
    }
    for (size_t i = 0; exchange_saved(&x->reducer.exchange, i, &memory, &bytes); i++) {
        uint64_t length = bytes;
        put(s, &length, sizeof length);
        put(s, memory, bytes);
    }
}

bool library_save(void *arguments, struct err *e) {
    struct saving *s = arguments;
    char *out = s->out, settings[SETTINGS_MAX];
    if (s->x->begun) return err_set(e, "nothing can be saved between begin and run");
    settings_of(s->x, settings);
    struct saved_head h = head_of(s->x, settings);
    s->out = NULL;
    s->at = sizeof h + h.settings;
    save_body(s);
    if (!out || s->at > s->count) return true;
    s->out = out;
    s->at = sizeof h;
    put(s, settings, h.settings);
    save_body(s);
    h.hash = hash_of(h, out + sizeof h, s->at - sizeof h);
    memcpy(out, &h, sizeof h);
    return true;
}

/* -- restore ------------------------------------------------------------------------------------------------------- */
/* Bytes that are whole, of this rank of an exchange that was opened in the same way. */
static bool head_fits(const struct saving *s, struct saved_head *h, struct err *e) {
    char own_settings[SETTINGS_MAX], settings[SETTINGS_MAX];
    settings_of(s->x, own_settings);
    const struct saved_head own = head_of(s->x, own_settings);
    if (s->count > 0 && !s->in) return err_set(e, "%zu saved bytes are to be at NULL", s->count);
    if (s->count < sizeof *h) return err_set(e, "%zu bytes are no saved exchange", s->count);
    memcpy(h, s->in, sizeof *h);
    if (h->magic != own.magic) return err_set(e, "these bytes are no saved exchange, or one of another format");
    if (h->hash != hash_of(*h, s->in + sizeof *h, s->count - sizeof *h) || h->settings >= SETTINGS_MAX ||
        h->settings > s->count - sizeof *h)
        return err_set(e, "the saved exchange is damaged");
    if (h->n != own.n || h->rank != own.rank || h->size != own.size)
        return err_set(e, "what was saved is of %llu entries, rank %d of %d; this is of %zu, %d of %d",
                       (unsigned long long)h->n, (int)h->rank, (int)h->size, s->x->n, (int)own.rank, (int)own.size);
    memcpy(settings, s->in + sizeof *h, h->settings);
    settings[h->settings] = '\0';
    if (strcmp(settings, own_settings) != 0) return differs(settings, own_settings, e);
    if (!(h->density > 0 && h->density <= s->x->options.density_max))
        return err_set(e, "its density of %g is above density-max, %g", h->density, s->x->options.density_max);
    return true;
}

/* Are all lengths right? Nothing is written yet. */
static bool body_fits(const struct saving *s, const struct saved_head *h, struct err *e) {
    sparsetrain *x = s->x;
    struct saving all = {.x = x, .at = sizeof *h + h->settings};
    const char *in = s->in + all.at;
    void *memory;
    size_t bytes;
    save_body(&all);
    if (all.at != s->count) return err_set(e, "the saved exchange has %zu bytes, not %zu", s->count, all.at);
    if (x->reducer.store.acc) in += x->n * sizeof(float);
    for (size_t i = 0; exchange_saved(&x->reducer.exchange, i, &memory, &bytes); i++) {
        uint64_t length;
        memcpy(&length, in, sizeof length);
        if (length != bytes) return err_set(e, "piece %zu of the saved exchange has another length", i);
        in += sizeof length + bytes;
    }
    return true;
}

/* Of a body that fits; exchange_check looks at the contents. */
static void take_body(const struct saving *s, const struct saved_head *h) {
    sparsetrain *x = s->x;
    struct store *store = &x->reducer.store;
    const char *in = s->in + sizeof *h + h->settings;
    void *memory;
    size_t bytes;
    if (store->acc) {
        store->ops->write(store, 0, x->n, (const float *)(const void *)in);
        in += x->n * sizeof(float);
    }
    for (size_t i = 0; exchange_saved(&x->reducer.exchange, i, &memory, &bytes); i++) {
        in += sizeof(uint64_t);
        if (bytes > 0) memcpy(memory, in, bytes);
        in += bytes;
    }
}

/* Would all ranks go on from the same step? What differs would only show when messages do not fit. Collective. */
static void check_moment(const sparsetrain *x, const struct saved_head *h, bool fits, struct err *e) {
    struct saved_head first = *h;
    comm_bcast(x->comm, 0, &first, sizeof first);
    if (fits && (h->steps != first.steps || h->density != first.density))
        err_set(e, "rank %d restores step %llu, density %g, and rank 0 step %llu, density %g: take bytes of one moment",
                x->comm->rank, (unsigned long long)h->steps, h->density, (unsigned long long)first.steps,
                first.density);
}

bool library_restore(void *arguments, struct err *e) {
    struct saving *s = arguments;
    sparsetrain *x = s->x;
    struct saved_head h = {0};
    if (x->begun) return err_set(e, "nothing can be restored between begin and run");
    bool fits = head_fits(s, &h, e) && body_fits(s, &h, e);
    check_moment(x, &h, fits, e);
    if (comm_agree(x->comm, e)) return false;
    take_body(s, &h);
    if (!exchange_check(&x->reducer.exchange, e)) /* the state is nothing that could be used any more */
        return err_with(&x->broken, EXIT_USER, "%s", e->text);
    x->steps = h.steps;
    x->density = h.density;
    x->k = density_to_k(x->density, x->n);
    return true;
}
