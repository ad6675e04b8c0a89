/* comm_cost.c: the cost model: the lines of the algorithms against the papers' tables, written down here once more;
 * the built-in networks; network files, good and bad. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/table.h"
#include "comm/exchange.h"

static const struct cost_case cases[] = {
    {.n = 25000000, .k = 25000}, {.n = 14728266, .k = 294565}, {.n = 1000, .k = 1000}, {.n = 5, .k = 1}};
enum { CASES = sizeof cases / sizeof cases[0] };

static struct cost cost_of(const struct exchange_ops *ops, struct cost_case c, int P, int ranks_per_node) {
    struct cost cost = {.alphas = -1, .words = -1, .node_alphas = -1, .node_words = -1};
    c.P = P;
    c.ranks_per_node = ranks_per_node;
    ops->cost(&c, &cost);
    return cost;
}

static void one_rank_costs_nothing(void **state) {
    (void)state;
    for (size_t i = 0; exchanges[i]; i++) {
        if (!exchanges[i]->cost) fail_msg("%s has no cost line", exchanges[i]->name);
        for (size_t c = 0; c < CASES; c++) {
            struct cost cost = cost_of(exchanges[i], cases[c], 1, 1);
            if (cost.alphas != 0 || cost.words != 0 || cost.node_alphas != 0 || cost.node_words != 0)
                fail_msg("%s at P = 1: %g alpha %g words, inside a node %g and %g", exchanges[i]->name, cost.alphas,
                         cost.words, cost.node_alphas, cost.node_words);
        }
    }
}

/* More ranks never cost less, but that recursive doubling is done with fewer messages where all ranks double (P a power
 * of two) than where one is folded in. With one rank a node nothing passes inside nodes. */
static void more_ranks_cost_more(void **state) {
    (void)state;
    for (size_t i = 0; exchanges[i]; i++) {
        for (size_t c = 0; c < CASES; c++) {
            struct cost last = {0};
            for (int P = 1; P <= 520; P++) {
                struct cost now = cost_of(exchanges[i], cases[c], P, 1);
                assert_true(isfinite(now.alphas) && isfinite(now.words));
                bool doubles = strcmp(exchanges[i]->name, "gtopk-rd") == 0 && (P & (P - 1)) == 0;
                if (doubles && P > 2) last = cost_of(exchanges[i], cases[c], P / 2, 1);
                if (now.alphas < last.alphas || now.words < last.words * (1 - 1e-12))
                    fail_msg("%s from P = %d to %d: %g to %g alpha, %g to %g words", exchanges[i]->name, P - 1, P,
                             last.alphas, now.alphas, last.words, now.words);
                if (now.node_alphas != 0 || now.node_words != 0)
                    fail_msg("%s at P = %d, one rank a node: %g alpha, %g words inside", exchanges[i]->name, P,
                             now.node_alphas, now.node_words);
                last = now;
            }
            struct cost two = cost_of(exchanges[i], cases[c], 8, 2);
            assert_true(two.node_alphas >= 0 && two.node_words >= 0 && two.alphas >= 0 && two.words >= 0);
        }
    }
}

/* gTop-k Table I, Ok-Topk Table 1, at powers of two; words as [least, most] where the paper gives an interval. */
static void papers_tables(void **state) {
    (void)state;
    for (size_t i = 0; exchanges[i]; i++) {
        for (size_t c = 0; c < CASES; c++) {
            for (int rounds = 1; rounds <= 8; rounds++) {
                const char *name = exchanges[i]->name;
                double n = (double)cases[c].n, k = (double)cases[c].k, P = ldexp(1, rounds), part = (P - 1) / P;
                double alphas, least, most;
                if (strcmp(name, "dense") == 0)
                    alphas = 2.0 * rounds, least = most = 2 * n * part;
                else if (strcmp(name, "topka") == 0)
                    alphas = rounds, least = most = 2 * k * (P - 1);
                else if (strcmp(name, "gtopk") == 0)
                    alphas = 2.0 * rounds, least = most = 4 * k * rounds;
                else if (strcmp(name, "gtopk-rd") == 0)
                    alphas = rounds, least = most = 2 * k * rounds;
                else if (strcmp(name, "topkdsa") == 0)
                    alphas = P + 2.0 * rounds, least = 4 * k * part, most = (2 * k + n) * part;
                else if (strcmp(name, "gaussiank") == 0)
                    alphas = 2.0 * rounds, least = most = 2 * k * (P - 1);
                else if (strcmp(name, "oktopk") == 0)
                    alphas = 2 * P + 2.0 * rounds, least = 2 * k * part, most = 6 * k * part;
                else if (strcmp(name, "randomk") == 0) /* dense's, of k in place of n */
                    alphas = 2.0 * rounds, least = most = 2 * k * part;
                else
                    continue;
                if (least > most) least = most; /* topkdsa where k is near n */
                most += 2 * P;                  /* lengths of messages that are not known beforehand */
                struct cost cost = cost_of(exchanges[i], cases[c], (int)P, 1);
                if (fabs(cost.alphas - alphas) > 1e-9 || cost.words < least * (1 - 1e-12) - 1 ||
                    cost.words > most * (1 + 1e-12) + 1)
                    fail_msg("%s, n = %g, k = %g, P = %g: %g alpha and %g words, the paper has %g and %g to %g", name,
                             n, k, P, cost.alphas, cost.words, alphas, least, most);
            }
        }
    }
}

static void seconds(void **state) {
    (void)state;
    struct network net = {.alpha = 2, .beta = 3, .node_alpha = 5, .node_beta = 7};
    assert_true(cost_seconds(&(struct cost){.alphas = 1}, &net) == 2);
    assert_true(cost_seconds(&(struct cost){.words = 1}, &net) == 3);
    assert_true(cost_seconds(&(struct cost){.node_alphas = 1}, &net) == 5);
    assert_true(cost_seconds(&(struct cost){.node_words = 1}, &net) == 7);
    assert_true(cost_seconds(&(struct cost){.alphas = 2, .words = 3, .node_alphas = 4, .node_words = 5}, &net) ==
                4 + 9 + 20 + 35);
}

/* What a format changes: nothing in coo32; in the others the entries of the line and, where their lengths vary, the
 * gathering of sizes. A line never claims more entries than it has words; what is sparse sends entries, or indices and
 * values apart. */
static void formats(void **state) {
    (void)state;
    for (size_t i = 0; exchanges[i]; i++) {
        const struct exchange_ops *x = exchanges[i];
        for (size_t c = 0; c < CASES; c++) {
            for (int P = 1; P <= 300; P = P * 2 + P % 3) {
                struct cost coo32 = cost_of(x, cases[c], P, P % 2 ? 1 : 2), same, packed;
                const struct cost_entries *s = &coo32.sparse, *inside = &coo32.node_sparse;
                const struct cost_entries *apart = &coo32.indices;
                if ((x->sparse && !x->blind) != (apart->messages > 0 || s->messages > 0) && P > 2)
                    fail_msg("%s, P = %d: no entries and no indices", x->name, P);
                assert_true(apart->messages == 0 ||
                            fabs(apart->messages * apart->entries + coo32.values - coo32.words) <= 1e-9 * coo32.words);
                if (x->selects != (s->messages > 0) && P > 2)
                    fail_msg("%s, P = %d: %g messages of entries", x->name, P, s->messages);
                if (2 * s->messages * s->entries > coo32.words * (1 + 1e-12) ||
                    2 * inside->messages * inside->entries > coo32.node_words * (1 + 1e-12))
                    fail_msg("%s, P = %d: more entries than words", x->name, P);
                if (s->messages > 0) assert_true(s->density > 0 && s->density <= 1 && s->entries > 0);
                if (inside->messages > 0) assert_true(inside->density > 0 && inside->density <= 1);
                cost_in_format(&coo32, wires[0], &same);
                assert_true(same.alphas == coo32.alphas && same.words == coo32.words);
                assert_true(same.node_words == coo32.node_words);
                cost_in_format(&coo32, wires[1], &packed);
                if (s->messages + apart->messages == 0)
                    assert_true(packed.words == coo32.words && packed.alphas == coo32.alphas);
                if (s->messages == 0) continue;
                double entries = s->messages * s->entries, bytes = wires[1]->expected_bytes(s->entries, s->density);
                double words = coo32.words - 2 * entries + s->messages * bytes / 4 + coo32.size_words;
                assert_true(fabs(packed.words - words) <= 1e-9 * words);
                assert_true(packed.alphas == coo32.alphas + coo32.size_alphas);
            }
        }
    }
}

/* Nobody packs or unpacks more messages than there are on its path, and who sends entries does both; what local work
 * takes is the sum of its parts, and at one rank is selection alone. */
static void local_work(void **state) {
    (void)state;
    const struct local_cost entries = {.pack = 1}, unpacked = {.unpack = 1}, add = {.add = 1}, word = {.word = 1};
    for (size_t i = 0; exchanges[i]; i++) {
        for (int P = 1; P <= 300; P = P * 2 + P % 3) {
            struct cost cost = cost_of(exchanges[i], cases[0], P, P % 2 ? 1 : 2);
            const struct cost_entries *s = &cost.sparse, *inside = &cost.node_sparse;
            if ((s->packed > 0) != (s->messages > 0) || (s->unpacked > 0) != (s->messages > 0))
                fail_msg("%s, P = %d: %g messages, %g packed", exchanges[i]->name, P, s->messages, s->packed);
            assert_true(s->unpacked <= s->messages && s->packed <= s->messages);
            assert_true(inside->unpacked <= inside->messages && inside->packed <= inside->messages);
            const struct local_cost all = {.select = 3, .pack = 1, .unpack = 1, .add = 1, .word = 1};
            double sum = 300 + cost_local(&cost, NULL, 100, &entries) + cost_local(&cost, NULL, 100, &unpacked) +
                         cost_local(&cost, NULL, 100, &add) + cost_local(&cost, NULL, 100, &word);
            assert_true(fabs(cost_local(&cost, NULL, 100, &all) - sum) <= 1e-9 * sum);
            if (P == 1) assert_true(sum == 300);
        }
    }
}

/* By hand, P = 8, k = 1000 of 1M: what comes in and is worked on. gtopk's result is passed on three times, and unpacked
 * once; of micro nothing is a sparse vector. */
static void local_words(void **state) {
    (void)state;
    static const struct {
        const char *algo;
        double packed, unpacked, received;
    } rows[] = {{"topka", 1, 7, 14000}, {"gtopk", 4, 4, 8000},   {"gtopk-rd", 3, 3, 6000},
                {"micro", 0, 0, 2625},  {"randomk", 0, 0, 1750}, {"spardl", 6, 6, 3500}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct exchange_ops *x;
        TABLE_FIND(exchanges, rows[i].algo, x);
        assert_non_null(x);
        if (!x) return;
        struct cost cost = cost_of(x, (struct cost_case){.n = 1000000, .k = 1000}, 8, 1);
        if (cost.sparse.packed != rows[i].packed || cost.sparse.unpacked != rows[i].unpacked ||
            fabs(cost_received(&cost, NULL) - rows[i].received) > 1e-9)
            fail_msg("%s: %g packed, %g unpacked, %g words", x->name, cost.sparse.packed, cost.sparse.unpacked,
                     cost_received(&cost, NULL));
    }
}

/* Worked out here: topka at density 0.001 on 4 ranks; wires[1] is packed. 1000 entries a message: 2 words of head, 500
 * of values; widths of 9 bits (512 is the last power below 999 ln 2 at which a wider one does not pay) in 3 full
 * blocks and one of 232. */
static void topka_packed(void **state) {
    (void)state;
    struct cost cost = cost_of(exchanges[3], (struct cost_case){.n = 1000000, .k = 1000}, 4, 1);
    assert_string_equal(exchanges[3]->name, "topka");
    assert_string_equal(wires[1]->name, "packed");
    cost_in_format(&cost, wires[1], &cost);
    double q = pow(0.999, 512), height = q / (1 - q);
    double full = 1 + 72 + 256 * (1 + height) / 32 + 0.5,
           rest = 1 + ceil(232 * 9 / 32.0) + 232 * (1 + height) / 32 + 0.5;
    assert_true(fabs(cost.words - 3 * (2 + 500 + 3 * full + rest) - 6) < 1e-6);
    assert_true(cost.alphas == 4);
}

/* By hand, micro on 4 ranks, k = 4000 of 1M: three messages of 1000 indices, 6000 values; in each format as many bytes
 * as a message of 1000 entries has without its values (and, in 16 bits, its two words in front), and 2 or 4 for a
 * value. What local work is charged: the indices are packed once and three times unpacked, 4000 values rounded. */
static void micro_apart(void **state) {
    (void)state;
    const struct exchange_ops *x;
    const struct local_cost local = {.pack = 5, .round = 3, .decode = 7};
    TABLE_FIND(exchanges, "micro", x);
    assert_non_null(x);
    struct cost coo32 = cost_of(x, (struct cost_case){.n = 1000000, .k = 4000}, 4, 1);
    assert_true(coo32.words == 9000 && coo32.alphas == 6);
    for (size_t w = 0; wires[w]; w++) {
        struct cost now;
        double value = wires[w]->rounds ? 2 : 4,
               bytes = wires[w]->expected_bytes(1000, 0.004) - 1000 * value - (wires[w]->pack ? 8 : 0);
        bool fixed = wires[w]->fixed;
        cost_in_format(&coo32, wires[w], &now);
        assert_true(fabs(now.words - (3 * bytes + 6000 * value) / 4 - (fixed ? 0 : 6)) < 1e-6);
        assert_true(now.alphas == 6 + (fixed ? 0 : 2));
        assert_true(cost_local(&coo32, wires[w], 100, &local) ==
                    (fixed ? 0 : 1000 * (5 - 3) + 3 * 1000 * 7) + (wires[w]->rounds ? 4000 * 3 : 0));
    }
}

static void built_in_networks(void **state) {
    (void)state;
    static const char *const names[] = {"1gbe", "10gbe", "25gbe", "100gbe", "aries"};
    struct network net, slower = {0};
    struct err e = {0};
    size_t count = 0;
    for (const struct network *known = networks; *known->name; known++) count++;
    assert_int_equal(count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_true(network_find(names[i], &net, &e));
        assert_string_equal(net.name, names[i]);
        assert_true(net.alpha > 0 && net.beta > 0 && net.node_alpha > 0 && net.node_beta > 0);
        assert_true(strlen(net.source) > 10 && strlen(net.source) < sizeof net.source - 1);
        if (i > 0 && i < 4) assert_true(net.alpha < slower.alpha && net.beta < slower.beta);
        slower = net;
    }
    assert_true(network_find("1gbe", &net, &e)); /* the papers' figures */
    assert_true(net.alpha == 0.436e-3 && fabs(net.beta - 4 * 9e-9) < 1e-20);
    assert_true(network_find("10gbe", &net, &e));
    assert_true(fabs(net.beta - 4 / 1.25e9) < 1e-20);
}

static char folder[] = "/tmp/sparsetrain-cost.XXXXXX", path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/net", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_bytes(const char *text, size_t bytes) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void write_file(const char *text) {
    write_bytes(text, strlen(text));
}

static void written_and_read_back(void **state) {
    (void)state;
    static const double numbers[] = {0, 1, 0.1, 1.0 / 3, 4.36e-4, 3.6e-8, 5e-324, 1e300, 0x1.fffffffffffffp-30};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct network net = {"mine", numbers[i], 1 / 7.0, 1e-9, 0, "a test: with # and \"quotes\""}, back;
        struct err e = {0};
        assert_true(network_write(path, &net, i % 2 ? "one line\nalpha 5\n" : NULL, &e));
        assert_true(network_find(path, &back, &e));
        assert_true(back.alpha == net.alpha && back.beta == net.beta);
        assert_true(back.node_alpha == net.node_alpha && back.node_beta == net.node_beta);
        assert_string_equal(back.name, net.name);
        assert_string_equal(back.source, net.source);
    }
}

static void names_fall_back_to_the_file(void **state) {
    (void)state;
    struct network net;
    struct err e = {0};
    write_file("\n  # comment\n\tbeta\t2e-9 \r\nalpha   1e-6\nnode_beta 0\nnode_alpha -0\n");
    assert_true(network_find(path, &net, &e));
    assert_string_equal(net.name, "net");
    assert_true(net.alpha == 1e-6 && net.beta == 2e-9 && net.node_alpha == 0 && !signbit(net.node_alpha));
}

static void bad_files(void **state) {
    (void)state;
    static const char rest[] = "alpha 1e-6\nbeta 1e-9\nnode_alpha 1e-6\n";
    static const struct {
        const char *line, *says;
    } bad[] = {
        {"", "node_beta is missing"},
        {"node_beta\n", "node_beta"},
        {"node_beta fast\n", "node_beta fast"},
        {"node_beta 1e-9 s\n", "node_beta 1e-9 s"},
        {"node_beta -1e-9\n", "negative"},
        {"node_beta nan\n", "node_beta nan"},
        {"node_beta -nan\n", "number"},
        {"node_beta inf\n", "node_beta inf"},
        {"node_beta 1e999\n", "node_beta 1e999"},
        {"node_beta 1,5\n", "node_beta 1,5"},
        {"node_beta 1e-9\nalpha 1\n", "alpha is there twice"},
        {"node_beta 1e-9\nname a\nname b\n", "name is there twice"},
        {"node_beta 1e-9\nsource a\nsource b\n", "source is there twice"},
        {"node_beta 1e-9\ngamma 1\n", "unknown key \"gamma\""},
        {"node_beta 1e-9\nAlpha 1\n", "unknown key \"Alpha\""},
        {"node_beta 1e-9\n\001\002\n", "unknown key \"??\""},
        {"node_beta=1e-9\n", "unknown key \"node_beta=1e-9\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        struct network net;
        struct err e = {0};
        snprintf(text, sizeof text, "%s%s", rest, bad[i].line);
        write_file(text);
        assert_false(network_find(path, &net, &e));
        if (!strstr(e.text, bad[i].says)) fail_msg("\"%s\" does not say \"%s\"", e.text, bad[i].says);
        assert_non_null(strstr(e.text, path));
        assert_null(strchr(e.text, '\n'));
    }
}

static void bad_places(void **state) {
    (void)state;
    struct network net = networks[0];
    struct err e = {0};
    char line[2000], text[2100];
    assert_false(network_find("1gb", &net, &e));
    assert_non_null(strstr(e.text, "1gbe, 10gbe, 25gbe, 100gbe, aries"));
    e.text[0] = 0;
    assert_false(network_find(folder, &net, &e));
    assert_non_null(strstr(e.text, folder));
    e.text[0] = 0;
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = 0;
    snprintf(text, sizeof text, "alpha 1\nsource %s\n", line);
    write_file(text);
    assert_false(network_find(path, &net, &e));
    assert_non_null(strstr(e.text, ":2: the line has more than 510 characters"));
    e.text[0] = 0;
    static const char cut[] = "alpha 1\nbeta 1\0005\nnode_alpha 1\nnode_beta 1\n";
    write_bytes(cut, sizeof cut - 1);
    assert_false(network_find(path, &net, &e));
    assert_non_null(strstr(e.text, ":2: there is a zero byte in the line"));
    e.text[0] = 0;
    assert_false(network_write("/nonexistent/net", &net, "", &e));
    assert_non_null(strstr(e.text, "/nonexistent/net"));
    e.text[0] = 0;
    assert_false(network_write("/dev/full", &net, "", &e));
    assert_non_null(strstr(e.text, "cannot write /dev/full: it is a device"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_costs_nothing),
        cmocka_unit_test(more_ranks_cost_more),
        cmocka_unit_test(local_work),
        cmocka_unit_test(local_words),
        cmocka_unit_test(papers_tables),
        cmocka_unit_test(seconds),
        cmocka_unit_test(formats),
        cmocka_unit_test(topka_packed),
        cmocka_unit_test(micro_apart),
        cmocka_unit_test(built_in_networks),
        cmocka_unit_test(written_and_read_back),
        cmocka_unit_test(names_fall_back_to_the_file),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(bad_places),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
