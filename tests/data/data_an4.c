/* AN4: the real set where it is, small sets of the same form made here, from directories and archives, and every kind
 * of damage that its files can have. */
#include "tests/lib/data_speech_support.h"

#include "base/hash.h"

/* What is recorded, train and then test, in the order of the lists. */
static const struct {
    const char *id, *line;
    size_t samples;
    const char *text;
} made[] = {
    {"an4_clstk/aa/an1-aa-b", "<s> YES </s> (an1-aa-b)", 3200, "YES"},
    {"an4_clstk/aa/an2-aa-b", "<s>  go ON \t now</s>\t(an2-aa-b)", 4801, "GO ON NOW"},
    {"an4_clstk/bb/an1-bb-b", "DON'T (an1-bb-b)  ", 1600, "DON'T"},
    {"an4test_clstk/cc/an1-cc-b", "L L (an1-cc-b)", 640, "L L"},
    {"an4test_clstk/cc/an2-cc-b", "Q (an2-cc-b)", 1, "Q"},
};
enum { MADE = sizeof made / sizeof *made, TRAIN = 3, TEST = 2 };

static unsigned char *raw_of(size_t i, size_t *bytes) {
    int16_t *sample = make_samples(i, made[i].samples);
    unsigned char *raw = mem_alloc(2 * made[i].samples, 1, "a recording");
    for (size_t j = 0; j < made[i].samples; j++) {
        raw[2 * j] = (unsigned char)((uint16_t)sample[j] >> 8);
        raw[2 * j + 1] = (unsigned char)((uint16_t)sample[j] & 0xff);
    }
    mem_free(sample);
    *bytes = 2 * made[i].samples;
    return raw;
}

/* The four lists, etc/an4_NAME. */
static const char *const list[4] = {"train.fileids", "train.transcription", "test.fileids", "test.transcription"};

static void list_text(int which, char text[1024]) {
    int at = 0;
    text[0] = '\0';
    for (size_t i = which < 2 ? 0 : TRAIN; i < (which < 2 ? TRAIN : (size_t)MADE); i++)
        at += sprintf(text + at, "%s%s", which % 2 ? made[i].line : made[i].id, i == 1 ? "\r\n\n" : "\n");
}

static void in(const char *dir, const char *command) {
    char *line = mem_printf("cd '%s' && %s", dir, command);
    assert_int_equal(system(line), 0);
    mem_free(line);
}

static void write_lists(const char *dir) {
    for (int i = 0; i < 4; i++) {
        char text[1024], *name = mem_printf("etc/an4_%s", list[i]);
        list_text(i, text);
        write_bytes(dir, name, text, strlen(text));
        mem_free(name);
    }
}

static void write_set(const char *dir) {
    in(dir, "mkdir -p etc wav/an4_clstk/aa wav/an4_clstk/bb wav/an4test_clstk/cc");
    write_lists(dir);
    for (size_t i = 0; i < MADE; i++) {
        size_t bytes;
        unsigned char *raw = raw_of(i, &bytes);
        char *name = mem_printf("wav/%s.raw", made[i].id);
        write_bytes(dir, name, raw, bytes);
        mem_free(name);
        mem_free(raw);
    }
}

static void check_split(const struct speech_set *set, size_t first, size_t count, bool keeps, struct spectrogram *s) {
    size_t longest = 0;
    assert_int_equal(set->count, count);
    for (size_t i = 0; i < count; i++) {
        const struct utterance *u = &set->utterance[i];
        const size_t samples = made[first + i].samples, frames = 1 + samples / 160;
        int16_t *sample = make_samples(first + i, samples);
        float *x = mem_alloc(SPECTROGRAM_BINS * frames, sizeof *x, "a spectrogram");
        char text[64];
        assert_int_equal(u->frames, frames);
        spectrogram_fill(s, sample, samples, x);
        assert_memory_equal(set->feature + u->feature, x, SPECTROGRAM_BINS * frames * sizeof *x);
        expect_samples(set, u, sample, samples, keeps);
        transcript_decode(set->label + u->label, u->labels, text);
        assert_string_equal(text, made[first + i].text);
        assert_int_equal(u->crc, crc32_of(0, sample, samples * sizeof *sample));
        if (frames > longest) longest = frames;
        if (i > 0) {
            const struct utterance *a = &set->utterance[set->by_length[i - 1]], *b = &set->utterance[set->by_length[i]];
            assert_true(a->frames < b->frames || (a->frames == b->frames && a < b));
        }
        mem_free(x);
        mem_free(sample);
    }
    assert_int_equal(set->longest, longest);
}

static uint32_t check_small(const struct dataset *d) {
    struct spectrogram *s = spectrogram_open();
    check_split(&d->train_speech, 0, TRAIN, true, s);
    check_split(&d->test_speech, TRAIN, TEST, false, s);
    spectrogram_close(s);
    assert_int_equal(d->valid_speech.count, 0);
    assert_int_equal(d->classes, 29);
    assert_int_equal(d->label_stride, 9);
    assert_true(d->channels == 1 && d->height == 161 && d->width == 31);
    return dataset_checksum(d);
}

static void from_directory(void **state) {
    (void)state;
    need_fftw("from_directory");
    char *dir = make_directory(), *sub = mem_printf("%s/an4", dir);
    assert_int_equal(mkdir(sub, 0777), 0);
    write_set(sub);
    for (int i = 0; i < 2; i++) {
        struct err e = {0};
        struct dataset d, other;
        void *memory = load_set(&dataset_an4, i ? sub : dir, 1, &d, &e);
        if (!memory) fail_msg("%s", e.text);
        assert_string_equal(d.source, sub);
        const uint32_t crc = check_small(&d);
        assert_true(dataset_find(&dataset_an4, dir, 1, &other, &e)); /* a rank that did not load */
        assert_int_equal(other.bytes, d.bytes);
        dataset_attach(&other, memory);
        assert_int_equal(check_small(&other), crc);
        mem_free(memory);
    }
    mem_free(sub);
    remove_tree(dir);
}

/* -- archives --------------------------------------------------------------------------------------------------------
 */

static void add_list(struct tar *t, int i) {
    char text[1024], *name = mem_printf("an4/etc/an4_%s", list[i]);
    list_text(i, text);
    tar_add(t, name, '0', text, strlen(text));
    mem_free(name);
}

static void add_recording(struct tar *t, size_t i, const char *folder) {
    size_t bytes;
    unsigned char *raw = raw_of(i, &bytes);
    char *name = mem_printf("%swav/%s.raw", folder, made[i].id);
    tar_add(t, name, '0', raw, bytes);
    mem_free(name);
    mem_free(raw);
}

/* backwards: the recordings in the opposite order, before the lists; without: a recording that is left out, MADE: none.
 */
static char *write_archive(const char *dir, const char *name, bool backwards, size_t without, bool twice) {
    struct tar t = {0};
    tar_add(&t, "an4/", '5', NULL, 0);
    for (int i = 0; i < 4 && !backwards; i++) add_list(&t, i);
    for (size_t i = 0; i < MADE; i++) {
        const size_t at = backwards ? MADE - 1 - i : i;
        if (at != without) add_recording(&t, at, "an4/");
    }
    tar_add(&t, "an4/wav/README", '0', "x", 1);
    tar_add(&t, "an4/wav/an4_clstk/aa/short", '0', "x", 1);
    for (int i = 3; i >= 0 && backwards; i--) add_list(&t, i);
    if (twice) add_recording(&t, 0, "an4/");
    tar_finish(&t);
    char *path = gzip_to(dir, name, t.bytes, t.size);
    mem_free(t.bytes);
    return path;
}

static void from_archive(void **state) {
    (void)state;
    need_fftw("from_archive");
    char *dir = make_directory(), *plain = make_directory();
    struct err e = {0};
    struct dataset d;
    write_set(plain);
    void *memory = load_set(&dataset_an4, plain, 1, &d, &e);
    const uint32_t crc = check_small(&d);
    mem_free(memory);
    for (int i = 0; i < 4; i++) {
        char *path = write_archive(dir, "an4_raw.bigendian.tar.gz", i / 2, MADE, false);
        memory = load_set(&dataset_an4, i % 2 ? path : dir, 1, &d, &e);
        if (!memory) fail_msg("%s", e.text);
        assert_string_equal(d.source, path);
        assert_int_equal(check_small(&d), crc); /* whatever the order in memory */
        assert_int_equal(entries_in(dir), 1);   /* nothing was unpacked */
        mem_free(memory);
        mem_free(path);
    }
    remove_tree(plain);
    remove_tree(dir);
}

/* -- bad input -------------------------------------------------------------------------------------------------------
 */

#define GET_IT "sh scripts/fetch-data.sh an4"

/* `where` is refused with a line that says all of these. */
static void refused(const char *where, const char *a, const char *b) {
    struct err e = {0};
    struct dataset d;
    void *memory = load_set(&dataset_an4, where, 1, &d, &e);
    mem_free(memory);
    assert_null(memory);
    assert_int_equal(err_status(&e), EXIT_USER);
    assert_says(&e, a);
    assert_says(&e, b);
}

static void put_text(const char *dir, const char *name, const char *text) {
    write_bytes(dir, name, text, strlen(text));
}

static void bad_recordings(void **state) {
    (void)state;
    need_fftw("bad_recordings");
    char *dir = make_directory();
    unsigned char raw[5 * 640] = {0};
    write_set(dir);
    put_text(dir, "wav/an4_clstk/bb/an1-bb-b.raw", "");
    refused(dir, "wav/an4_clstk/bb/an1-bb-b.raw has no samples", "an4_train.transcription");
    write_bytes(dir, "wav/an4_clstk/bb/an1-bb-b.raw", raw, 3199);
    refused(dir, "wav/an4_clstk/bb/an1-bb-b.raw has 3199 bytes of samples, an odd number", "get it anew");
    in(dir, "rm wav/an4_clstk/bb/an1-bb-b.raw");
    refused(dir, "line 4 names", "wav/an4_clstk/bb/an1-bb-b.raw, which cannot be read: No such file");
    in(dir, "mkdir wav/an4_clstk/bb/an1-bb-b.raw");
    refused(dir, "wav/an4_clstk/bb/an1-bb-b.raw, which is not a file", "an4_train.fileids: line 4");
    in(dir, "rmdir wav/an4_clstk/bb/an1-bb-b.raw && truncate -s 115200001 wav/an4_clstk/bb/an1-bb-b.raw");
    refused(dir, "an1-bb-b.raw is longer than an hour", "cut it");
    remove_tree(dir);
}

/* "L L" takes three steps, and "LL" as well. */
static void too_short(void **state) {
    (void)state;
    need_fftw("too_short");
    char *dir = make_directory();
    unsigned char raw[4 * 640] = {0};
    struct err e = {0};
    struct dataset d;
    write_set(dir);
    for (int i = 0; i < 2; i++) {
        if (i) put_text(dir, "etc/an4_test.transcription", "LL (an1-cc-b)\nQ (an2-cc-b)\n");
        write_bytes(dir, "wav/an4test_clstk/cc/an1-cc-b.raw", raw, 2 * 640); /* 5 frames, 3 steps */
        void *memory = load_set(&dataset_an4, dir, 1, &d, &e);
        if (!memory) fail_msg("%s", e.text);
        mem_free(memory);
        write_bytes(dir, "wav/an4test_clstk/cc/an1-cc-b.raw", raw, 2 * 639); /* 4 frames, 2 steps */
        refused(dir, "an1-cc-b.raw is too short for its transcript, in line 1 of",
                i ? "its 4 frames of 10 ms become 2 steps of a network, and the 2 characters take 3"
                  : "become 2 steps of a network, and the 3 characters take 3");
    }
    remove_tree(dir);
}

static void bad_lists(void **state) {
    (void)state;
    need_fftw("bad_lists");
    char *dir = make_directory(), text[1024];
    refused(dir, "holds no AN4: expected etc/an4_train.fileids", GET_IT);
    refused("/nowhere/at/all", "/nowhere/at/all holds no AN4", GET_IT);
    write_set(dir);
    for (int i = 1; i < 4; i++) {
        char *command = mem_printf("mv etc/an4_%s kept", list[i]), *back = mem_printf("mv kept etc/an4_%s", list[i]);
        in(dir, command);
        refused(dir, list[i], GET_IT);
        in(dir, back);
        mem_free(back);
        mem_free(command);
    }
    put_text(dir, "etc/an4_train.transcription", "<s> YES </s> (an1-aa-b)\n");
    refused(dir, "an4_train.transcription has fewer lines than", "an4_train.fileids: get it again with `" GET_IT "`");
    list_text(1, text);
    put_text(dir, "etc/an4_train.transcription", strcat(text, "<s> YES </s> (an1-aa-b)\n"));
    refused(dir, "an4_train.fileids has fewer lines than", GET_IT);
    static const struct {
        const char *line, *says;
    } lines[] = {
        {"<s> YES </s> (an2-aa-b)", "line 1 is not of an4_clstk/aa/an1-aa-b"},
        {"<s> YES </s> an1-aa-b)", "line 1 is not of an4_clstk/aa/an1-aa-b"},
        {"<s> YES </s> (an1-aa-b", "line 1 is not of an4_clstk/aa/an1-aa-b"},
        {"<s> YES </s> (xan1-aa-b)", "line 1 is not of"},
        {"<s> YES </s> (an1-aa)", "line 1 is not of"},
        {"YES", "line 1 is not of"},
        {"<s> </s> (an1-aa-b)", "an4_train.transcription: line 1 has no transcript"},
        {"(an1-aa-b)", "an4_train.transcription: line 1 has no transcript"},
        {"<s> YES 1 </s> (an1-aa-b)", "an4_train.transcription: the transcript in line 1 has \"1\""},
        {"<s> Y_S </s> (an1-aa-b)", "has \"_\"; letters of English"},
        {"<s> Y\xc3\x89S </s> (an1-aa-b)", "has the byte 0xc3"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        list_text(1, text);
        char *changed = mem_printf("%s%s", lines[i].line, strchr(text, '\n'));
        put_text(dir, "etc/an4_train.transcription", changed);
        refused(dir, "an4_train.transcription", lines[i].says);
        mem_free(changed);
    }
    write_lists(dir);
    in(dir, "for i in fileids transcription; do head -n 1 etc/an4_train.$i >>etc/an4_test.$i; done");
    refused(dir, ": its lists name an4_clstk/aa/an1-aa-b twice", GET_IT);
    put_text(dir, "etc/an4_test.fileids", "\n \n");
    put_text(dir, "etc/an4_test.transcription", "");
    refused(dir, "an4_test.fileids names no recordings", GET_IT);
    remove_tree(dir);
}

/* Memory is asked for by what find sees; what is larger at load is refused, and nothing is written beyond. */
static void growing(void **state) {
    (void)state;
    need_fftw("growing");
    char *dir = make_directory();
    unsigned char raw[9000] = {0};
    for (int i = 0; i < 2; i++) {
        struct err e = {0};
        struct dataset d;
        write_set(dir);
        assert_true(dataset_find(&dataset_an4, dir, 1, &d, &e));
        void *memory = malloc(d.bytes);
        assert_non_null(memory);
        if (i)
            in(dir, "for i in fileids transcription; do cat etc/an4_train.$i >>etc/an4_test.$i; done");
        else
            write_bytes(dir, "wav/an4_clstk/aa/an1-aa-b.raw", raw, sizeof raw);
        assert_false(dataset_load(&d, memory, &e));
        assert_says(&e, "grew while they were read; start again");
        free(memory);
    }
    remove_tree(dir);
}

static void bad_archives(void **state) {
    (void)state;
    need_fftw("bad_archives");
    char *dir = make_directory();
    char *path = write_archive(dir, "a.tar.gz", false, 2, false);
    refused(path, "a.tar.gz: wav/an4_clstk/bb/an1-bb-b.raw is not in it", GET_IT);
    mem_free(path);
    path = write_archive(dir, "a.tar.gz", false, MADE, true);
    refused(path, "a.tar.gz: wav/an4_clstk/aa/an1-aa-b.raw occurs twice", GET_IT);
    mem_free(path);
    struct tar t = {0};
    for (int i = 0; i < 3; i++) add_list(&t, i);
    tar_finish(&t);
    path = gzip_to(dir, "a.tar.gz", t.bytes, t.size);
    refused(path, "a.tar.gz holds no etc/an4_test.transcription", GET_IT);
    add_list(&t, 3);
    mem_free(path);
    mem_free(t.bytes);
    t = (struct tar){0};
    for (int i = 0; i < 4; i++) add_list(&t, i % 4 == 3 ? 0 : i);
    tar_finish(&t);
    path = gzip_to(dir, "a.tar.gz", t.bytes, t.size);
    refused(path, "a.tar.gz: etc/an4_train.fileids occurs twice", GET_IT);
    mem_free(path);
    mem_free(t.bytes);
    t = (struct tar){0};
    for (int i = 0; i < 4; i++) { /* the test's utterances are those of the training */
        char text[1024], *name = mem_printf("an4/etc/an4_%s", list[i]);
        list_text(i % 2, text);
        tar_add(&t, name, '0', text, strlen(text));
        mem_free(name);
    }
    tar_finish(&t);
    path = gzip_to(dir, "a.tar.gz", t.bytes, t.size);
    refused(path, "a.tar.gz: its lists name an4_clstk/aa/an1-aa-b twice", GET_IT);
    mem_free(path);
    mem_free(t.bytes);
    put_text(dir, "b.tar.gz", "not gzip at all");
    path = mem_printf("%s/b.tar.gz", dir);
    refused(path, "b.tar.gz", GET_IT);
    mem_free(path);
    remove_tree(dir);
}

/* Packed in two pieces, of which only the last one's size stands at its end: there is memory for less than there is. */
static void larger_than_promised(void **state) {
    (void)state;
    need_fftw("larger_than_promised");
    char *dir = make_directory(), *path = mem_printf("%s/a.tar.gz", dir);
    struct err e = {0};
    struct dataset d;
    struct tar t = {0};
    for (int i = 0; i < 4; i++) add_list(&t, i);
    for (size_t i = 0; i < MADE; i++) add_recording(&t, i, "an4/");
    const size_t members = t.size;
    tar_finish(&t);
    const size_t begin[] = {0, members}, size[] = {members, t.size - members};
    for (int i = 0; i < 2; i++) {
        gzFile f = gzopen(path, i ? "ab1" : "wb1");
        assert_non_null(f);
        assert_int_equal(gzwrite(f, t.bytes + begin[i], (unsigned)size[i]), size[i]);
        assert_int_equal(gzclose(f), Z_OK);
    }
    assert_true(dataset_find(&dataset_an4, path, 1, &d, &e));
    assert_in_range(d.bytes, 1, 69 * SPECTROGRAM_BINS * sizeof(float)); /* of the frames that there are */
    void *memory = malloc(d.bytes);
    assert_non_null(memory);
    assert_false(dataset_load(&d, memory, &e));
    assert_says(&e, ".raw is longer than its size promised when memory was asked for");
    free(memory);
    mem_free(t.bytes);
    mem_free(path);
    remove_tree(dir);
}

/* An archive that was cut off anywhere, or with a byte changed, is refused or read as it was. */
static void damaged_archive(void **state) {
    (void)state;
    need_fftw("damaged_archive");
    char *dir = make_directory(), *path = write_archive(dir, "a.tar.gz", false, MADE, false);
    size_t size;
    uint8_t *whole = read_whole(path, &size);
    struct rng r = rng_open(5, RNG_TEST, 99);
    for (int trial = 0; trial < 300; trial++) {
        struct err e = {0};
        struct dataset d;
        uint8_t *bytes = mem_alloc(size, 1, "an archive");
        memcpy(bytes, whole, size);
        const bool cut = trial % 2;
        if (!cut) bytes[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
        write_bytes(dir, "a.tar.gz", bytes, cut ? rng_below(&r, (uint32_t)size) : size);
        void *memory = load_set(&dataset_an4, path, 1, &d, &e);
        assert_true(!memory == (e.text[0] != '\0'));
        assert_null(strchr(e.text, '\n'));
        if (cut) assert_null(memory);
        if (memory) check_small(&d); /* a byte of the name or time in gzip's head */
        mem_free(memory);
        mem_free(bytes);
    }
    mem_free(whole);
    mem_free(path);
    remove_tree(dir);
}

/* -- the real one ----------------------------------------------------------------------------------------------------
 */

static void expect_text(const struct speech_set *set, size_t number, uint32_t frames, const char *text) {
    char is[128];
    const struct utterance *u = &set->utterance[number];
    assert_int_equal(u->frames, frames);
    transcript_decode(set->label + u->label, u->labels, is);
    assert_string_equal(is, text);
}

static size_t sum_frames(const struct speech_set *set) {
    size_t frames = 0;
    for (size_t i = 0; i < set->count; i++) frames += set->utterance[i].frames;
    return frames;
}

static void real_set(void **state) {
    (void)state;
    need_fftw("real_set");
    struct err e = {0};
    struct dataset d;
    void *memory = load_set(&dataset_an4, real_data(), 1, &d, &e);
    if (!memory) {
        printf("# SKIP real_set: %s\n", e.text);
        skip();
    }
    assert_int_equal(d.train_speech.count, 948);
    assert_int_equal(d.test_speech.count, 130);
    assert_int_equal(sum_frames(&d.train_speech), 255578); /* the sizes of the files say so */
    assert_int_equal(sum_frames(&d.test_speech), 35830);
    assert_int_equal(d.train_speech.longest, 641);
    assert_int_equal(d.label_stride, 57);
    expect_text(&d.train_speech, 0, 101, "YES");
    expect_text(&d.test_speech, 0, 401, "RUBOUT G M E F THREE NINE");
    assert_int_equal(dataset_checksum(&d), 0x472797b4);
    mem_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_directory),  cmocka_unit_test(from_archive),
        cmocka_unit_test(bad_recordings),  cmocka_unit_test(too_short),
        cmocka_unit_test(bad_lists),       cmocka_unit_test(growing),
        cmocka_unit_test(bad_archives),    cmocka_unit_test(larger_than_promised),
        cmocka_unit_test(damaged_archive), cmocka_unit_test(real_set),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
