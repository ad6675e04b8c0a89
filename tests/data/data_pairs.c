/* A text in pairs: how it is cut into articles and sentences, and packing against a naive version of it; what
 * WikiText-2 becomes, where it is. */
#include "tests/lib/data_pairs_support.h"

#include <math.h>

enum { SENTENCES_MAX = 400 };

/* -- articles and sentences ---------------------------------------------------------------------------------------- */

static struct wordpiece *open_vocabulary(void) {
    struct err e = {0};
    char *dir = make_directory(), *path = mem_printf("%s/vocab.txt", dir);
    write_vocabulary(dir);
    struct wordpiece *w = wordpiece_open(path, &e);
    assert_string_equal(e.text, "");
    mem_free(path);
    remove_tree(dir);
    return w;
}

static void word_of(struct vocabulary v, int id, char *to) {
    const char *from = v.lines;
    while (id--) from = strchr(from, '\n') + 1;
    sprintf(to, "%.*s", (int)(strchr(from, '\n') - from), from);
}

/* Sentences end with '/', articles with '|'. */
static void expect_articles(const char *text, const char *expected) {
    struct err e = {0};
    struct articles a = {0};
    struct wordpiece *w = open_vocabulary();
    char found[1024] = "", word[16];
    assert_true(articles_read(&a, w, "a text", text, strlen(text), &e));
    for (size_t k = 0; k < a.count; k++, strcat(found, "|"))
        for (size_t s = a.article[k]; s < a.article[k + 1]; s++, strcat(found, "/"))
            for (size_t i = a.sentence[s]; i < a.sentence[s + 1]; i++) {
                word_of(wordpiece_lines(w), a.piece[i], word);
                strcat(strcat(found, word), i + 1 < a.sentence[s + 1] ? " " : "");
            }
    assert_string_equal(found, expected);
    assert_int_equal(a.sentence[a.sentences], a.pieces);
    assert_int_equal(a.article[a.count], a.sentences);
    articles_close(&a);
    wordpiece_close(w);
}

static void articles_and_sentences(void **state) {
    (void)state;
    need_unicode("articles_and_sentences");
    expect_articles("", "");
    expect_articles(" \n\n \n", "");
    expect_articles("a b . c d . e", "a b ./c d ./e/|");
    expect_articles("a b . c d . \n e .\n", "a b ./c d ./e ./|");
    expect_articles(" \n = a b = \n \n c . d \n \n = e = \n \n f\n", "= a b =/c ./d/|= e =/f/|");
    expect_articles("x\n\n= a =\n\ny\n", "x/|= a =/y/|");                         /* something before the first title */
    expect_articles("= a =\n\n = = b . c = = \n d\n", "= a =/= = b . c = =/d/|"); /* a heading is not cut */
    expect_articles("= a =\n\nb\n= c =\n\nd", "= a =/b/= c =/d/|");               /* no blank line before: a heading */
    expect_articles("= a =\n\nb\n\n= c =\nd", "= a =/b/= c =/d/|");               /* none after it */
    expect_articles("= a =\n\nb\n\n= = c =\n\nd", "= a =/b/= = c =/d/|");         /* two on one side */
    expect_articles("= a =\n\nb\n\n= c = =\n\nd", "= a =/b/= c = =/d/|");
    expect_articles("= a =\n\n= b =\n\n= c =", "= a =/|= b =/|= c =/|"); /* titles alone */
    expect_articles("= a =\r\n\r\nb . c\r\n", "= a =/b ./c/|");
    expect_articles("a.b c. . d .e .\n", "a . b c . ./d . e ./|");
    expect_articles(". . a\n", "././a/|");
    expect_articles("= =\n\n=\n", "= =/=/|"); /* nothing between: no heading, a paragraph */
}

static void bad_text(const char *text, size_t bytes, const char *part) {
    struct err e = {0};
    struct articles a = {0};
    struct wordpiece *w = open_vocabulary();
    assert_false(articles_read(&a, w, "name", text, bytes, &e));
    assert_says(&e, "name: line ");
    assert_says(&e, part);
    articles_close(&a);
    wordpiece_close(w);
}

static void bad_texts(void **state) {
    (void)state;
    need_unicode("bad_texts");
    bad_text("a\nb \xff\n", 6, "line 2 is not UTF-8");
    bad_text("a\nb\0\n", 5, "line 2 holds a zero byte");
}

/* -- packing ------------------------------------------------------------------------------------------------------- */

/* Pieces in a list from whose ends they can be taken. */
struct list {
    uint16_t *first;
    size_t count;
    uint16_t room[1 << 16];
};

static void extend(struct list *l, const struct articles *a, size_t sentence) {
    for (size_t i = a->sentence[sentence]; i < a->sentence[sentence + 1]; i++) l->first[l->count++] = a->piece[i];
}

static struct list *empty_list(struct list *l) {
    l->first = l->room;
    l->count = 0;
    return l;
}

/* As create_instances_from_document of create_pretraining_data.py does it, list by list. */
struct naive {
    const struct articles *a;
    const struct pair_list *made;
    size_t next; /* of made */
    size_t most;
    struct rng r;
    size_t random, could; /* B of another article where there was a choice; choices */
};

static void truncate_pair(struct naive *n, struct list *a, struct list *b) {
    while (a->count + b->count > n->most) {
        struct list *l = a->count > b->count ? a : b;
        l->first += rng_below(&n->r, 2) == 1;
        l->count--;
    }
}

static void expect_pair(struct naive *n, const struct list *a, const struct list *b, bool random, bool alone) {
    assert_true(n->next < n->made->count);
    const struct pair *p = &n->made->pair[n->next++];
    assert_int_equal(p->a_length, a->count);
    assert_int_equal(p->b_length, b->count);
    assert_memory_equal(n->a->piece + p->a, a->first, a->count * sizeof *a->first);
    assert_memory_equal(n->a->piece + p->b, b->first, b->count * sizeof *b->first);
    assert_int_equal(p->random, random);
    assert_int_equal(p->alone, alone);
    assert_int_equal(p->zero, 0);
    n->random += random && !alone;
    n->could += !alone;
}

static void naive_other(struct naive *n, size_t article, size_t target, struct list *b) {
    const struct articles *a = n->a;
    size_t other = rng_below(&n->r, (uint32_t)a->count - 1);
    other += other >= article;
    assert_int_not_equal(other, article);
    size_t from = a->article[other] + rng_below(&n->r, a->article[other + 1] - a->article[other]);
    for (size_t s = from; s < a->article[other + 1]; s++) {
        extend(b, a, s);
        if (b->count >= target) break;
    }
}

static void naive_article(struct naive *n, size_t article) {
    static struct list a, b;
    size_t i = n->a->article[article], last = n->a->article[article + 1] - 1;
    while (i <= last) {
        size_t chunk[SENTENCES_MAX], count = 0, length = 0, end = 1;
        size_t target = rng_below(&n->r, 10) ? n->most : 2 + rng_below(&n->r, (uint32_t)n->most - 1);
        while (i <= last && (count == 0 || length < target)) {
            assert_true(count < SENTENCES_MAX);
            length += n->a->sentence[i + 1] - n->a->sentence[i];
            chunk[count++] = i++;
        }
        if (count > 2) end = 1 + rng_below(&n->r, (uint32_t)count - 1);
        empty_list(&a), empty_list(&b);
        for (size_t k = 0; k < end; k++) extend(&a, n->a, chunk[k]);
        bool random = count == 1 || rng_below(&n->r, 2) == 1;
        if (random) {
            naive_other(n, article, target > a.count ? target - a.count : 0, &b);
            i -= count - end;
        }
        for (size_t k = end; !random && k < count; k++) extend(&b, n->a, chunk[k]);
        truncate_pair(n, &a, &b);
        expect_pair(n, &a, &b, random, count == 1);
    }
}

static void like_a_naive_one(void **state) {
    (void)state;
    need_unicode("like_a_naive_one");
    static const int length[] = {16, 17, 33, 128, 512};
    struct wordpiece *w = open_vocabulary();
    char *dir = make_directory();
    size_t random = 0, could = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct err e = {0};
        struct articles a = {0};
        size_t size;
        write_articles(dir, "text", seed, seed == 4 ? 2 : 100, seed == 3 ? 1 : 20, seed == 2 ? 150 : 12);
        char *path = mem_printf("%s/text", dir), *text = (char *)read_whole(path, &size);
        assert_true(articles_read(&a, w, path, text, size, &e));
        for (size_t k = 0; k < sizeof length / sizeof *length; k++) {
            struct pair_list made = {0};
            pairs_pack(&a, length[k], seed, 1, &made);
            struct naive n = {.a = &a, .made = &made, .most = (size_t)length[k] - 3};
            for (size_t i = 0; i < a.count; i++) {
                n.r = rng_open(seed, RNG_PACK, (uint64_t)1 << 32 | i);
                naive_article(&n, i);
            }
            assert_int_equal(n.next, made.count);
            random += n.random, could += n.could;
            pair_list_close(&made);
        }
        mem_free(text);
        mem_free(path);
        articles_close(&a);
    }
    assert_true(could > 5000);
    double off = (double)random - 0.5 * (double)could;
    assert_true(fabs(off) < 5 * 0.5 * sqrt((double)could));
    remove_tree(dir);
    wordpiece_close(w);
}

/* -- the dataset --------------------------------------------------------------------------------------------------- */

static size_t total(const struct pair_set *s, size_t *random, size_t *could) {
    size_t pieces = 0;
    *random = *could = 0;
    for (size_t i = 0; i < s->count; i++) {
        pieces += (size_t)s->pair[i].a_length + s->pair[i].b_length;
        *could += !s->pair[i].alone;
        *random += s->pair[i].random && !s->pair[i].alone;
    }
    return pieces;
}

static void loads(void **state) {
    (void)state;
    need_unicode("loads");
    struct err e = {0};
    struct dataset d, again, other;
    char *dir = make_wiki();
    void *memory = load_wiki(dir, 0, &d, &e), *second;
    assert_non_null(memory);
    assert_int_equal(d.ops->kind, DATA_PAIRS);
    assert_int_equal(d.length, 128);
    assert_int_equal(d.classes, PIECES);
    assert_int_equal(d.special.pad, 0);
    assert_int_equal(d.special.mask, 4);
    assert_memory_equal(d.vocabulary.lines, "[PAD]\n[UNK]\n", 12);
    assert_true(d.train_pairs.count > d.valid_pairs.count && d.valid_pairs.count > 0 && d.test_pairs.count > 0);
    assert_true(dataset_find(&dataset_wiki, dir, 7, &other, &e)); /* a rank that did not load */
    dataset_attach(&other, memory);
    assert_int_equal(other.train_pairs.count, d.train_pairs.count);
    assert_int_equal(dataset_checksum(&other), dataset_checksum(&d));
    second = load_wiki(dir, 128, &again, &e); /* the same bytes */
    assert_non_null(second);
    assert_int_equal(dataset_checksum(&again), dataset_checksum(&d));
    assert_int_equal(again.train_pairs.count, d.train_pairs.count);
    mem_free(second);
    second = load_wiki(dir, 64, &again, &e); /* others */
    assert_non_null(second);
    assert_int_equal(again.length, 64);
    assert_int_not_equal(dataset_checksum(&again), dataset_checksum(&d));
    assert_true(again.train_pairs.count > d.train_pairs.count);
    mem_free(second);
    mem_free(memory);
    remove_tree(dir);
}

static size_t articles_of(const struct wordpiece *w, const char *path) {
    struct err e = {0};
    struct articles a = {0};
    size_t size;
    char *text = (char *)read_whole(path, &size);
    assert_true(articles_read(&a, w, path, text, size, &e));
    size_t count = a.count;
    mem_free(text);
    articles_close(&a);
    return count;
}

/* Articles as Merity et al. count them. */
static void real_articles(const char *data) {
    struct err e = {0};
    char *path = mem_printf("%s/bert-base-uncased/vocab.txt", data);
    struct wordpiece *w = wordpiece_open(path, &e);
    mem_free(path);
    assert_non_null(w);
    for (int i = 0; i < TEXT_SPLITS; i++) {
        path = mem_printf("%s/wikitext-2/%s", data, wiki_name[i]);
        assert_int_equal(articles_of(w, path), i ? 60 : 600);
        mem_free(path);
    }
    wordpiece_close(w);
}

static void real_wikitext2(void **state) {
    (void)state;
    need_unicode("real_wikitext2");
    static const size_t pieces[TEXT_SPLITS] = {2392641, 260172, 299307}; /* as in tests/golden/wordpiece.h */
    const char *data = getenv("SPARSETRAIN_DATA");
    struct err e = {0};
    struct dataset d;
    if (!data) data = "build/data";
    void *memory = load_wiki(data, 0, &d, &e);
    if (!memory) {
        printf("# SKIP real_wikitext2: %s\n", e.text);
        skip();
    }
    const struct pair_set *set[TEXT_SPLITS] = {&d.train_pairs, &d.valid_pairs, &d.test_pairs};
    for (int i = 0; i < TEXT_SPLITS; i++) {
        size_t random, could, all = total(set[i], &random, &could);
        assert_int_equal(set[i]->pieces, pieces[i]);
        assert_true(fabs((double)random - 0.5 * (double)could) < 5 * 0.5 * sqrt((double)could));
        assert_true(all > 115 * set[i]->count); /* of 125: nine of ten are full */
        assert_true(could > set[i]->count * 9 / 10);
    }
    assert_int_equal(d.train_pairs.count, 23997);
    assert_int_equal(d.classes, 30522);
    mem_free(memory);
    real_articles(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(articles_and_sentences), cmocka_unit_test(bad_texts),
        cmocka_unit_test(like_a_naive_one),       cmocka_unit_test(loads),
        cmocka_unit_test(real_wikitext2),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
