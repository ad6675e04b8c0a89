/* library_options.c: see library_options.h. */
#include "comm/library_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

enum { NAME_MAX_BYTES = 64, VALUE_MAX_BYTES = 256 };

/* The i-th row that exchanges gradients. */
const struct exchange_ops *library_exchange(size_t i) {
    size_t row = 0;
    for (; exchanges[row]; row++)
        if (exchange_of_gradients(exchanges[row]) && i-- == 0) break;
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

/* All 64 bits, which a double has not. */
static bool set_seed(void *value, const char *text, struct err *e) {
    char *end;
    errno = 0;
    unsigned long long x = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return err_set(e, "--seed wants a whole number, not \"%.100s\"", text);
    *(uint64_t *)value = x;
    return true;
}

/* -- options ------------------------------------------------------------------------------------------------------- */
#define AT(field) OPTION_AT(struct library_options, field)

static const struct option_row own_rows[] = {
    {"density", "RHO", OPTION_REAL, "0.01", "", AT(density), .max = 1, .above_min = true},
    {"density-max", "RHO", OPTION_REAL, NULL, "", AT(density_max), .max = 1, .above_min = true},
    {"select", "NAME", OPTION_CHOICE, NULL, "", AT(select_number), .choice = selector_name},
    {"wire", "NAME", OPTION_CHOICE, "coo32", "", AT(wire_number), .choice = wire_name},
    {"device", "NAME", OPTION_CHOICE, "cpu", "", AT(device_number), .choice = device_choice},
    {NULL, AT(own)},
    {"bucket-bytes", "B", OPTION_SIZE, NULL, "", AT(bucket_bytes), .min = sizeof(float), .max = 1e15},
    {"ranks-per-node", "M", OPTION_SIZE, NULL, "", AT(ranks_per_node), .min = 1, .max = 1e6},
    {"seed", "N", OPTION_OTHER, "1", "", AT(seed), .set = set_seed},
};
static const struct option_row algorithm_row = {"the algorithm",          "NAME", OPTION_CHOICE, NULL, "",
                                                .choice = exchange_choice};

static struct option_row row[OPTION_ROWS_MAX];
static struct option_table table = {.row = row};

/* Before main, or while the library is loaded: threads find it as it stays. */
__attribute__((constructor)) static void gather(void) {
    table.rows = exchange_options_gather(row, own_rows, sizeof own_rows / sizeof *own_rows, true);
}

/* A line about an option, without the dashes that it has on a command line. */
static bool without_dashes(struct err *e) {
    if (strncmp(e->text, "--", 2) == 0) memmove(e->text, e->text + 2, strlen(e->text + 2) + 1);
    return false;
}

static bool set(struct library_options *o, const char *name, char *value, struct err *e) {
    const struct option_row *found = option_find(&table, name, strlen(name));
    if (!found) {
        char all[512] = "";
        for (size_t i = 0; i < table.rows; i++) names_add(all, sizeof all, table.row[i].name);
        return err_set(e, "there is no option \"%s\"; there are: %s", name, all);
    }
    for (char *at = value; found->type == OPTION_SET && *at; at++)
        if (*at == '+') *at = ',';
    return option_set(found, o, value, e) || without_dashes(e);
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
    int number = 0;
    *o = (struct library_options){0};
    option_defaults(&table, o);
    if (!option_set(&algorithm_row, &number, algorithm ? algorithm : "", e)) return without_dashes(e);
    o->ops = library_exchange((size_t)number);
    for (const char *at = text; at && *at;) {
        size_t length = strcspn(at, ",");
        if (!set_one(o, at, length, e)) return false;
        at += length + (at[length] == ',');
    }
    o->select = o->select_number < 0 ? NULL : selectors[o->select_number];
    o->wire = wires[o->wire_number];
    o->device = device_of_choice((size_t)o->device_number);
    if (!(o->density_max >= o->density)) o->density_max = o->density;
    return true;
}

struct option_values library_values(const struct library_options *o) {
    return (struct option_values){table.row, table.rows, o};
}
