/* library_options.c: see library_options.h. */
#include "comm/library_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "comm/exchange_options.h"

enum { NAME_MAX_BYTES = 64, VALUE_MAX_BYTES = 256, LONGEST_PERIOD = 1000000000 };

/* -- values -------------------------------------------------------------------------------------------------------- */
static bool real(const char *name, const char *text, double *value, struct err *e) {
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || !(x > 0 && x <= 1))
        return err_set(e, "%s takes a number above 0, 1 at most, not \"%.100s\"", name, text);
    *value = x;
    return true;
}

static bool whole(const char *name, const char *text, size_t least, size_t most, size_t *value, struct err *e) {
    char *end;
    unsigned long long x = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || x < least || x > most)
        return err_set(e, "%s takes a whole number in %zu..%zu, not \"%.100s\"", name, least, most, text);
    *value = (size_t)x;
    return true;
}

static bool steps(const char *name, const char *text, int *value, struct err *e) {
    size_t count = 0;
    if (!whole(name, text, 1, LONGEST_PERIOD, &count, e)) return false;
    *value = (int)count;
    return true;
}

/* choice: the i-th name, NULL past the end; *value: the number of the one that is text. what: begins the line that says
 * that there is none, as "wire has no". */
static bool find(const char *what, const char *text, const char *(*choice)(size_t), size_t *value, struct err *e) {
    char all[512] = "";
    for (size_t i = 0; choice(i); i++) {
        if (strcmp(choice(i), text) == 0) return *value = i, true;
        names_add(all, sizeof all, choice(i));
    }
    return err_set(e, "%s \"%.100s\"; there are: %s", what, text, all);
}

static bool one_of(const char *name, const char *text, const char *(*choice)(size_t), size_t *value, struct err *e) {
    char what[NAME_MAX_BYTES + sizeof " has no"];
    snprintf(what, sizeof what, "%s has no", name);
    return find(what, text, choice, value, e);
}

/* The i-th row that exchanges gradients. */
const struct exchange_ops *library_exchange(size_t i) {
    size_t row = 0;
    for (; exchanges[row]; row++)
        if (!exchanges[row]->drifts && i-- == 0) break;
    return exchanges[row];
}

static const char *exchange_choice(size_t i) {
    const struct exchange_ops *ops = library_exchange(i);
    return ops ? ops->name : NULL;
}
/* The i-th device whose memory is arrays. */
static const struct device_ops *device_of_choice(size_t i) {
    size_t row = 0;
    for (; devices[row]; row++)
        if (!devices[row]->no_arrays && i-- == 0) break;
    return devices[row];
}
static const char *device_choice(size_t i) {
    const struct device_ops *device = device_of_choice(i);
    return device ? device->name : NULL;
}

/* -- options ------------------------------------------------------------------------------------------------------- */
typedef bool setter(struct library_options *o, const char *name, const char *text, struct err *e);

static bool set_density(struct library_options *o, const char *name, const char *text, struct err *e) {
    return real(name, text, &o->density, e);
}
static bool set_density_max(struct library_options *o, const char *name, const char *text, struct err *e) {
    return real(name, text, &o->density_max, e);
}
static bool set_select(struct library_options *o, const char *name, const char *text, struct err *e) {
    size_t i = 0;
    bool good = one_of(name, text, selector_name, &i, e);
    if (good) o->select = selectors[i];
    return good;
}
static bool set_device(struct library_options *o, const char *name, const char *text, struct err *e) {
    size_t i = 0;
    bool good = one_of(name, text, device_choice, &i, e);
    if (good) o->device = device_of_choice(i);
    return good;
}
static bool set_wire(struct library_options *o, const char *name, const char *text, struct err *e) {
    size_t i = 0;
    bool good = one_of(name, text, wire_name, &i, e);
    if (good) o->wire = wires[i];
    return good;
}
static bool set_tau(struct library_options *o, const char *name, const char *text, struct err *e) {
    return steps(name, text, &o->oktopk.balance_period, e);
}
static bool set_tau_prime(struct library_options *o, const char *name, const char *text, struct err *e) {
    return steps(name, text, &o->oktopk.period, e);
}
static bool set_bucket(struct library_options *o, const char *name, const char *text, struct err *e) {
    return steps(name, text, &o->oktopk.bucket, e);
}
static bool set_thresholds(struct library_options *o, const char *name, const char *text, struct err *e) {
    size_t i = 0;
    bool good = one_of(name, text, thresholds_name, &i, e);
    if (good) o->oktopk.thresholds = (enum reuse_rule)i;
    return good;
}
static bool set_off(struct library_options *o, const char *name, const char *text, struct err *e) {
    char list[VALUE_MAX_BYTES];
    snprintf(list, sizeof list, "%s", text);
    for (char *at = list; *at; at++)
        if (*at == '+') *at = ',';
    return oktopk_leave_out(name, list, &o->oktopk, e);
}
static bool set_residual(struct library_options *o, const char *name, const char *text, struct err *e) {
    size_t i = 0;
    bool good = one_of(name, text, residual_name, &i, e);
    if (good) o->gtopk_residual = (enum gtopk_residual)i;
    return good;
}
static bool set_adjust(struct library_options *o, const char *name, const char *text, struct err *e) {
    return gaussian_adjust(name, text, &o->unadjusted, e);
}
static bool set_bucket_bytes(struct library_options *o, const char *name, const char *text, struct err *e) {
    return whole(name, text, sizeof(float), SIZE_MAX / 2, &o->bucket_bytes, e);
}
static bool set_ranks_per_node(struct library_options *o, const char *name, const char *text, struct err *e) {
    return whole(name, text, 1, 1000000, &o->ranks_per_node, e);
}
static bool set_seed(struct library_options *o, const char *name, const char *text, struct err *e) {
    return whole(name, text, 0, SIZE_MAX / 2, &o->seed, e);
}

static const struct {
    const char *name;
    setter *set;
} table[] = {{"density", set_density},
             {"density-max", set_density_max},
             {"select", set_select},
             {"wire", set_wire},
             {"device", set_device},
             {"tau", set_tau},
             {"tau-prime", set_tau_prime},
             {"oktopk-bucket", set_bucket},
             {"oktopk-thresholds", set_thresholds},
             {"oktopk-off", set_off},
             {"gtopk-residual", set_residual},
             {"gaussian-adjust", set_adjust},
             {"bucket-bytes", set_bucket_bytes},
             {"ranks-per-node", set_ranks_per_node},
             {"seed", set_seed}};
enum { ROWS = sizeof table / sizeof *table };

static const char *option_choice(size_t i) {
    return i < ROWS ? table[i].name : NULL;
}

static bool set(struct library_options *o, const char *name, const char *value, struct err *e) {
    size_t i = 0;
    return find("there is no option", name, option_choice, &i, e) && table[i].set(o, name, value, e);
}

/* One "name=value" of `length` bytes. */
static bool set_one(struct library_options *o, const char *text, size_t length, struct err *e) {
    char name[NAME_MAX_BYTES], value[VALUE_MAX_BYTES];
    const char *equals = memchr(text, '=', length);
    size_t before = equals ? (size_t)(equals - text) : length, after = equals ? length - before - 1 : 0;
    if (!equals || before == 0 || before >= sizeof name || after >= sizeof value)
        return err_set(e, "\"%.*s\" is no option: they are name=value, with commas between them",
                       (int)(length < 100 ? length : 100), text);
    memcpy(name, text, before);
    name[before] = '\0';
    memcpy(value, equals + 1, after);
    value[after] = '\0';
    for (char *at = name; *at; at++)
        if (*at == '_') *at = '-';
    return set(o, name, value, e);
}

bool library_options_parse(struct library_options *o, const char *algorithm, const char *text, struct err *e) {
    size_t i = 0;
    *o = (struct library_options){.density = 0.01, .seed = 1, .wire = wires[0], .device = device_find("cpu")};
    if (!one_of("the algorithm", algorithm ? algorithm : "", exchange_choice, &i, e)) return false;
    o->ops = library_exchange(i);
    for (const char *at = text; at && *at;) {
        size_t length = strcspn(at, ",");
        if (!set_one(o, at, length, e)) return false;
        at += length + (at[length] == ',');
    }
    if (o->density_max < o->density) o->density_max = o->density;
    return true;
}
