/* fit.c: the verb `fit`, see fit.h. */
#include "cli/gradients/fit.h"

#include <stdio.h>
#include <string.h>

#include "base/files/out_file.h"
#include "cli/gradients/profile.h"

struct request {
    const char *recording, *out;
};

static const struct option_row options[] = {{"out", "PROFILE", OPTION_WORD, NULL,
                                             "write all of it to a file, for bench --pattern fitted:PROFILE",
                                             OPTION_AT(struct request, out)}};

const struct option_table fit_options = {
    .verb = "fit",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .operand = "recording",
    .operand_at = offsetof(struct request, recording),
    .wanted = "a recording is needed: train --record FILE --record-what selected makes it",
    .call = "sparsetrain fit RECORDING",
    .about =
        "From the entries that the ranks of a run selected (train --record RECORDING --record-what selected, on 2 "
        "ranks or more) to a few numbers that say how they overlap, and what that means for more ranks. The model: "
        "part q of a rank's k entries comes from a hot set of h k entries that all ranks share, the rest is its "
        "own.",
};

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
    if (option_parse(&fit_options, &r, NULL, argc, argv, 1, &e) && (!r.out || out_file_check(r.out, "--out", &e)) &&
        run(&r, &e))
        return EXIT_DONE;
    fflush(stdout);
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return err_status(&e);
}
