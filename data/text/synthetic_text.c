/* synthetic_text.c: a built-in text for machines without a corpus: a made-up language of 2,000 words drawn from a
 * stochastic grammar. As the grammar is known, so is the entropy of the text: the loss, in nats per word, that no
 * language model can beat (grammar.h has the formula and where it comes from).
 *
 * What there is to learn, from the easy to the hard:
 *   words    those of a class follow Zipf's law: the weight of the r-th is 1 / (r + 1);
 *   phrases  determiner, adjectives, noun; transitive verbs want an object, others do not; prepositions, adverbs,
 *            conjunctions; a word that comes before the sentence proper;
 *   number   every noun, verb and determiner is singular or plural. Verbs agree with the subject of the sentence, over
 *            adverbs, over a relative clause with a noun and a verb of their own number, and after a conjunction;
 *   topics   nouns and verbs belong to one of 6 topics. The subject decides the topic of its sentence: 3 in 4 nouns
 *            and verbs after it are of that topic; and 3 of 4 sentences stay with the topic of the one before.
 * One or two words of context say little about the number and the topic, so a bigram model stays clearly behind a model
 * that keeps a state. Each word determines the next state of the grammar, so that the source is unifilar and its
 * entropy can be computed exactly.
 *
 * A sentence, with the states in which its words are drawn; every state knows the topic t, those after the subject its
 * number n, those within a noun phrase also the number m of that phrase:
 *
 *   START    [opener, then FRONT] determiner n
 *   SUBJECT  adjectives; noun n
 *   NAMED    [relative pronoun, then CLAUSE] adverb, then VERB; or the verb n
 *   CLAUSE   either a determiner m, INNER: adjectives, noun m; INNER_VERB: adverbs, transitive verb m, then VERB
 *            or a verb n, transitive: PATIENT: determiner m; THING: adjectives, noun m, then VERB
 *   VERB     adverbs; verb n, transitive: OBJECT, else END
 *   OBJECT   determiner m; NOUN: adjectives, noun m
 *   END      adverbs; [preposition, then OBJECT] [conjunction, then VERB] <eos>
 *
 * The word <unk> stands, as in texts with a cut vocabulary, for a rare noun that could be any.
 * Words are drawn with integers alone, so that every machine makes the same text from the same seed. */
#include "data/text/synthetic_text.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/text/text_layout.h"

enum { TOPICS = 6, NUMBERS = 2, COUNT_MAX = 100000000 };
enum { TRAIN_DEFAULT = 200000, HELD_OUT_DEFAULT = 20000 };
/* The splits' numbers of random numbers; those of the synthetic images are far below, their noise far above. */
#define FIRST_NUMBER 20000000000u

/* -- the words ----------------------------------------------------------------------------------------------------- */

/* A kind of words: one class, or one for each number, or one for each number and topic, of so many words each. A word
 * is a stem of one or two syllables and the ending of its kind and number. */
struct kind {
    int classes, words, syllables;
    const char *ending[NUMBERS]; /* of the singular and the plural, or twice the same */
};
enum {
    OPENER,
    DETERMINER,
    ADJECTIVE,
    NOUN_OF,
    PRONOUN,
    ADVERB,
    TRANSITIVE,
    INTRANSITIVE,
    PREPOSITION,
    CONJUNCTION,
    KINDS
};
static const struct kind kinds[KINDS] = {
    [OPENER] = {1, 24, 2, {"r", "r"}},
    [DETERMINER] = {NUMBERS, 12, 1, {"n", "s"}},
    [ADJECTIVE] = {1, 200, 2, {"l", "l"}},
    [NOUN_OF] = {NUMBERS * TOPICS, 80, 2, {"", "s"}},
    [PRONOUN] = {1, 4, 1, {"", ""}},
    [ADVERB] = {1, 150, 2, {"m", "m"}},
    [TRANSITIVE] = {NUMBERS * TOPICS, 30, 2, {"t", "n"}},
    [INTRANSITIVE] = {NUMBERS * TOPICS, 20, 2, {"t", "n"}},
    [PREPOSITION] = {1, 30, 1, {"", ""}},
    [CONJUNCTION] = {1, 6, 1, {"", ""}},
};
enum { WORDS_MAX_KIND = 200, VOCABULARY_MAX = 16384 };

/* The class of a kind; classes 0 and 1 are <unk> and <eos>. Kinds follow one another, then topics, then numbers. */
static int class_of(int kind, int topic, int number) {
    int class = 2;
    for (int k = 0; k < kind; k++) class += kinds[k].classes;
    return class + (kinds[kind].classes == 1 ? 0 : NUMBERS * topic + number);
}

static void make_classes(struct grammar *g) {
    uint32_t weight[WORDS_MAX_KIND];
    for (uint32_t r = 0; r < WORDS_MAX_KIND; r++) weight[r] = 1000000 / (r + 1);
    grammar_class(g, 1, weight); /* <unk> */
    grammar_class(g, 1, weight); /* <eos> */
    for (int k = 0; k < KINDS; k++)
        for (int c = 0; c < kinds[k].classes; c++) grammar_class(g, kinds[k].words, weight);
}

/* Stem number i of one syllable (i < 75) or two (i < 5625). The multipliers have no factor in common with these
 * counts, so different numbers give different stems. */
static int spell(int i, int syllables, char *out) {
    static const char consonant[] = "bdfhjklmnprstvz", vowel[] = "aeiou";
    int stem = syllables == 1 ? i * 31 % 75 : i * 1237 % 5625;
    for (int s = 0; s < syllables; s++, stem /= 75) {
        *out++ = consonant[stem % 15];
        *out++ = vowel[stem / 15 % 5];
    }
    return 2 * syllables;
}

/* lines[VOCABULARY_MAX]: 2,000 words of up to 5 letters. A noun or verb has one stem for both its numbers: the classes
 * of a topic begin at the same. */
static size_t write_words(char *lines) {
    int stems[3] = {0};
    size_t at = (size_t)sprintf(lines, "<unk>\n<eos>\n");
    for (int k = 0; k < KINDS; k++)
        for (int c = 0; c < kinds[k].classes; c++) {
            bool another = kinds[k].classes > 1 && c % NUMBERS == 0; /* the plural follows, with the same stems */
            int *stem = &stems[kinds[k].syllables];
            for (int i = 0; i < kinds[k].words; i++) {
                at += (size_t)spell(*stem + i, kinds[k].syllables, lines + at);
                at += (size_t)sprintf(lines + at, "%s\n", kinds[k].ending[c % NUMBERS]);
            }
            if (!another) *stem += kinds[k].words;
        }
    return at;
}

/* -- the states ---------------------------------------------------------------------------------------------------- */

/* Those of a topic; from NAMED on for each number of the subject. A name ending in _M stands for two, one for each
 * number of the noun phrase that it is in. */
enum place {
    START,
    FRONT,
    SUBJECT_M,
    NAMED = SUBJECT_M + NUMBERS,
    CLAUSE,
    INNER_M,
    INNER_VERB_M = INNER_M + NUMBERS,
    PATIENT = INNER_VERB_M + NUMBERS,
    THING_M,
    VERB = THING_M + NUMBERS,
    OBJECT,
    NOUN_M,
    END = NOUN_M + NUMBERS,
    PLACES
};
enum { PER_NUMBER = PLACES - NAMED, PER_TOPIC = NAMED + NUMBERS * PER_NUMBER };

/* Where a state is: its topic, and the number of the subject where it is known already. */
struct where {
    int topic, number;
};

static int at(struct where w, int place) {
    return w.topic * PER_TOPIC + place + (place < NAMED ? 0 : w.number * PER_NUMBER);
}

/* The shares of the words of a topic: OWN of it to 1 for each of the others; of TOPICS - 1 + OWN together. */
enum { OWN = 15, ALL_TOPICS = OWN + TOPICS - 1 };
/* Of determiners: the singular and the plural. */
static const uint32_t number_share[NUMBERS] = {7, 5};

/* Words of a kind that has topics; they come from the state's topic as a rule, and do not change it. */
static void topical(struct grammar *g, struct where w, int from, int kind, int number, int to, uint32_t share) {
    for (int topic = 0; topic < TOPICS; topic++)
        grammar_arc(g, at(w, from), class_of(kind, topic, number), at(w, to), topic == w.topic ? OWN * share : share);
}

static void plain(struct grammar *g, struct where w, int from, int kind, int to, uint32_t share) {
    grammar_arc(g, at(w, from), class_of(kind, 0, 0), at(w, to), share);
}

/* A determiner of either number m, on to the place of that number. */
static void determiner(struct grammar *g, struct where w, int from, int to, uint32_t share) {
    for (int m = 0; m < NUMBERS; m++)
        grammar_arc(g, at(w, from), class_of(DETERMINER, 0, m), at(w, to + m), number_share[m] * share);
}

/* The rest of a noun phrase of number m: adjectives, which lead back, and the noun. */
static void noun(struct grammar *g, struct where w, int from, int m, int to) {
    plain(g, w, from, ADJECTIVE, from, 6);
    grammar_arc(g, at(w, from), SYNTHETIC_TEXT_UNK, at(w, to), 1);
    topical(g, w, from, NOUN_OF, m, to, 1);
}

/* The noun that is the subject: its topic becomes that of the sentence. */
static void subject(struct grammar *g, int topic, int n) {
    struct where w = {topic, n};
    int from = SUBJECT_M + n;
    plain(g, w, from, ADJECTIVE, from, 6);
    grammar_arc(g, at(w, from), SYNTHETIC_TEXT_UNK, at(w, NAMED), 1);
    for (int t = 0; t < TOPICS; t++)
        grammar_arc(g, at(w, from), class_of(NOUN_OF, t, n), at((struct where){t, n}, NAMED), t == topic ? OWN : 1);
}

/* The states of a topic and a number of the subject, in the order of the head of this file. */
static void sentence(struct grammar *g, struct where w) {
    plain(g, w, NAMED, PRONOUN, CLAUSE, 3 * ALL_TOPICS);
    plain(g, w, NAMED, ADVERB, VERB, ALL_TOPICS);
    topical(g, w, NAMED, TRANSITIVE, w.number, OBJECT, 2);
    topical(g, w, NAMED, INTRANSITIVE, w.number, END, 1);
    determiner(g, w, CLAUSE, INNER_M, 5);
    topical(g, w, CLAUSE, TRANSITIVE, w.number, PATIENT, 2);
    topical(g, w, CLAUSE, INTRANSITIVE, w.number, VERB, 1);
    determiner(g, w, PATIENT, THING_M, 1);
    for (int m = 0; m < NUMBERS; m++) {
        noun(g, w, INNER_M + m, m, INNER_VERB_M + m);
        plain(g, w, INNER_VERB_M + m, ADVERB, INNER_VERB_M + m, ALL_TOPICS / 5);
        topical(g, w, INNER_VERB_M + m, TRANSITIVE, m, VERB, 1);
        noun(g, w, THING_M + m, m, VERB);
        noun(g, w, NOUN_M + m, m, END);
    }
    plain(g, w, VERB, ADVERB, VERB, ALL_TOPICS);
    topical(g, w, VERB, TRANSITIVE, w.number, OBJECT, 2);
    topical(g, w, VERB, INTRANSITIVE, w.number, END, 1);
    determiner(g, w, OBJECT, NOUN_M, 1);
    plain(g, w, END, ADVERB, END, 1);
    plain(g, w, END, PREPOSITION, OBJECT, 2);
    plain(g, w, END, CONJUNCTION, VERB, 3);
    grammar_arc(g, at(w, END), SYNTHETIC_TEXT_EOS, at(w, START), 6);
}

void synthetic_text_grammar(struct grammar *g) {
    make_classes(g);
    for (int topic = 0; topic < TOPICS; topic++) {
        struct where w = {topic, 0};
        plain(g, w, START, OPENER, FRONT, 3);
        determiner(g, w, START, SUBJECT_M, 1);
        determiner(g, w, FRONT, SUBJECT_M, 1);
        for (w.number = 0; w.number < NUMBERS; w.number++) {
            subject(g, topic, w.number);
            sentence(g, w);
        }
    }
}

/* -- the row ------------------------------------------------------------------------------------------------------- */

/* "TRAINxVALIDxTEST" in words, or "" for the default. */
static bool parse_size(const char *where, unsigned long size[TEXT_SPLITS], struct err *e) {
    char rest;
    size[0] = TRAIN_DEFAULT;
    size[1] = size[2] = HELD_OUT_DEFAULT;
    bool good = !*where || (strspn(where, "0123456789x") == strlen(where) && strlen(where) < 30 &&
                            sscanf(where, "%lux%lux%lu%c", &size[0], &size[1], &size[2], &rest) == TEXT_SPLITS);
    for (int i = 0; i < TEXT_SPLITS; i++) good = good && size[i] >= 1 && size[i] <= COUNT_MAX;
    if (!good)
        return err_set(e,
                       "the size of the synthetic text is \"%.40s\"; give TRAINxVALIDxTEST in words, each 1 to "
                       "100000000, as in 200000x20000x20000",
                       where);
    return true;
}

static struct grammar *open_grammar(void) {
    struct grammar *g = mem_zalloc(1, sizeof *g, "the grammar of the synthetic text");
    synthetic_text_grammar(g);
    return g;
}

static bool find(struct dataset *d, const char *where, struct err *e) {
    unsigned long size[TEXT_SPLITS];
    if (!parse_size(where, size, e)) return false;
    struct grammar *g = open_grammar();
    d->entropy = grammar_entropy(g);
    mem_free(g);
    snprintf(d->source, sizeof d->source, "built in, %lux%lux%lu", size[0], size[1], size[2]);
    d->bytes = text_layout_bytes((size_t)size[0] + size[1] + size[2], VOCABULARY_MAX);
    return true;
}

/* Each split is a text of its own from the start of the grammar; a larger set holds the smaller one. A text ends with
 * its last word, within a sentence or not. */
static bool load(struct dataset *d, void *memory, struct err *e) {
    size_t count[TEXT_SPLITS];
    char lines[VOCABULARY_MAX];
    (void)e;
    if (sscanf(d->source, "built in, %zux%zux%zu", &count[0], &count[1], &count[2]) != TEXT_SPLITS)
        die("the source of a synthetic text is \"%s\"", d->source);
    struct grammar *g = open_grammar();
    int32_t *token = text_layout_tokens(memory);
    for (unsigned split = 0; split < TEXT_SPLITS; split++) {
        struct rng r = rng_open(d->seed, RNG_SYNTHETIC, FIRST_NUMBER + split);
        int state = SYNTHETIC_TEXT_START;
        for (size_t i = 0; i < count[split]; i++) *token++ = grammar_draw(g, &state, &r);
    }
    text_layout_seal(memory, count, (size_t)g->words, (struct vocabulary){lines, write_words(lines)});
    mem_free(g);
    return true;
}

const struct dataset_ops dataset_synthetic_text = {
    .name = "synthetic-text",
    .summary = "made up from a seed: a language of 2,000 words whose entropy is known, 200,000 words to train on and "
               "20,000 each to validate and test",
    .paper = "built in",
    .kind = DATA_TEXT,
    .built_in = true,
    .find = find,
    .load = load,
    .attach = text_layout_attach,
};
