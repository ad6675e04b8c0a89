/* fit.c: the verb `fit`, see fit.h. */
#include "cli/fit.h"

#include <stdio.h>
#include <string.h>

#include "base/out_file.h"
#include "cli/profile.h"

const char fit_usage[] =
    "usage: sparsetrain fit RECORDING [--out PROFILE]\n"
    "From the entries that the ranks of a run selected (train --record RECORDING --record-what selected, on 2 ranks "
    "or\n"
    "more) to a few numbers that say how they overlap, and what that means for more ranks. The model: part q of a\n"
    "rank's k entries comes from a hot set of h k entries that all ranks share, the rest is its own.\n"
    "  --out PROFILE  write all of it to a file, for bench --pattern fitted:PROFILE\n";

struct request {
    const char *recording, *out;
};

static bool parse(struct request *r, int argc, char **argv, struct err *e) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--out") == 0) {
            if (i + 1 == argc || !argv[i + 1][0]) return err_set(e, "fit: --out needs the name of a file");
            r->out = argv[++i];
        } else if (argv[i][0] == '-') {
            return err_set(e, "fit: unknown option %.60s; sparsetrain fit --help shows them all", argv[i]);
        } else if (r->recording) {
            return err_set(e, "fit: one recording at a time, not %.60s as well", argv[i]);
        } else {
            r->recording = argv[i];
        }
    }
    return r->recording ||
           err_set(e, "fit: a recording is needed: train --record FILE --record-what selected makes it");
}

static void print_row(const struct profile *p, double P) {
    double model = profile_union(p, P), n = (double)p->n;
    printf("%6.0f", P);
    if (P <= (double)p->ranks) {
        double measured = p->measured[(size_t)P - 1];
        printf(" %12.1f %12.1f %+8.2f%%", measured, model, 100 * (model / measured - 1));
    } else {
        printf(" %12s %12.1f %9s", "", model, "");
    }
    printf(" %9.4f%% %9.2f\n", 100 * model / n, model / p->k);
}

static void print_profile(const struct profile *p) {
    printf("# %s on %s: n %llu, k %.1f (density %.6f), %llu ranks, %llu steps", p->model, p->data,
           (unsigned long long)p->n, p->k, p->density, (unsigned long long)p->ranks, (unsigned long long)p->steps);
    if (p->steps > 1) printf(", %.4g apart", p->distance);
    printf("\n# q %.4f of a selection comes from a hot set of h k = %.4f k entries%s\n", p->overlap.q, p->overlap.h,
           p->h_fixed ? " (2 ranks give one number: h was fixed)" : "");
    printf("# entries that two ranks share have the same sign in %.1f%%", 100 * p->sign_agreement);
    if (p->steps > 1) printf("; %.1f%% of the hot set is there a recorded step later", 100 * p->persistence);
    printf("\n#%5s %12s %12s %9s %10s %9s\n", "ranks", "measured", "model", "off", "fill-in", "union/k");
    for (uint64_t P = 1; P <= p->ranks; P++) print_row(p, (double)P);
    for (uint64_t P = 8; P <= 256; P *= 2)
        if (P > p->ranks) print_row(p, (double)P);
}

static bool run(const struct request *r, struct err *e) {
    struct record_reader in;
    struct profile p;
    size_t left_out;
    if (!record_selected_open(&in, r->recording, e)) return false;
    bool good = profile_fit(&p, &in, &left_out, e);
    if (good && in.incomplete) printf("# an incomplete last step is left out\n");
    if (good && left_out > 0) printf("# %zu steps in which the density was warming up are left out\n", left_out);
    record_read_close(&in);
    if (!good) return false;
    print_profile(&p);
    good = !r->out || profile_write(&p, r->out, e);
    profile_close(&p);
    return good;
}

int fit(int argc, char **argv) {
    struct request r = {NULL, NULL};
    struct err e = {0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            fputs(fit_usage, stdout);
            return EXIT_DONE;
        }
    if (parse(&r, argc, argv, &e) && (!r.out || out_file_check(r.out, "--out", &e)) && run(&r, &e)) return EXIT_DONE;
    fflush(stdout);
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return err_status(&e);
}
