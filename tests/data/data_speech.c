/* Recordings of one's own: WAV files with lists of what is said in them. */
#include "tests/lib/data_speech_support.h"

#include "data/speech/speech_source.h"

static void put_text(const char *dir, const char *name, const char *text) {
    write_bytes(dir, name, text, strlen(text));
}

static char *make_set(void) {
    char *dir = make_directory(),
         *list = mem_printf("a.wav\tyes\nb c.wav\t Don't  stop\r\n\n%s/d.wav GO  HOME \n", dir);
    write_wav(dir, "a.wav", 0, 4000);
    write_wav(dir, "b c.wav", 1, 3000);
    write_wav(dir, "d.wav", 2, 3000);
    write_wav(dir, "e.wav", 3, 200);
    put_text(dir, "train.txt", list);
    put_text(dir, "test.txt", "e.wav A");
    mem_free(list);
    return dir;
}

static void expect(const struct speech_set *set, bool keeps, size_t i, uint64_t number, size_t samples,
                   const char *text) {
    const struct utterance *u = &set->utterance[i];
    struct spectrogram *s = spectrogram_open();
    int16_t *sample = make_samples(number, samples);
    const size_t floats = SPECTROGRAM_BINS * spectrogram_frames(samples);
    float *x = mem_alloc(floats, sizeof *x, "a spectrogram");
    char said[64];
    transcript_decode(set->label + u->label, u->labels, said);
    assert_string_equal(said, text);
    assert_int_equal(u->frames, spectrogram_frames(samples));
    expect_samples(set, u, sample, samples, keeps);
    spectrogram_fill(s, sample, samples, x);
    assert_memory_equal(set->feature + u->feature, x, floats * sizeof *x);
    spectrogram_close(s);
    mem_free(sample);
    mem_free(x);
}

static void reads(void **state) {
    (void)state;
    need_fftw("reads");
    char *dir = make_set(), *inside = mem_printf("%s/speech", dir);
    for (int valid = 0; valid < 3; valid++) {
        struct err e = {0};
        struct dataset d;
        if (valid == 1)
            put_text(dir, "valid.txt",
                     "\xef\xbb\xbf"
                     "d.wav go\na.wav A");
        if (valid == 2) { /* all of it in the folder that is called as the set is */
            char *command = mem_printf("cd '%s' && mkdir speech && mv *.txt *.wav speech && ln -s speech/d.wav .", dir);
            assert_int_equal(system(command), 0);
            mem_free(command);
        }
        void *memory = load_set(&dataset_speech, dir, 1, &d, &e);
        if (!memory) fail_msg("%s", e.text);
        assert_string_equal(d.source, valid == 2 ? inside : dir);
        assert_int_equal(d.train_speech.count, 3);
        expect(&d.train_speech, true, 0, 0, 4000, "YES");
        expect(&d.train_speech, true, 1, 1, 3000, "DON'T STOP");
        expect(&d.train_speech, true, 2, 2, 3000, "GO HOME");
        assert_true(d.train_speech.by_length[0] == 1 && d.train_speech.by_length[1] == 2 &&
                    d.train_speech.by_length[2] == 0);
        assert_int_equal(d.test_speech.count, 1);
        expect(&d.test_speech, false, 0, 3, 200, "A");
        assert_int_equal(d.valid_speech.count, valid ? 2 : 0);
        if (valid) expect(&d.valid_speech, false, 0, 2, 3000, "GO");
        assert_int_equal(d.label_stride, 10);
        assert_int_equal(d.width, 26);
        mem_free(memory);
    }
    mem_free(inside);
    remove_tree(dir);
}

/* -- bad input -------------------------------------------------------------------------------------------------------
 */

static void refused(const char *where, const char *a, const char *b) {
    struct err e = {0};
    struct dataset d;
    void *memory = load_set(&dataset_speech, where, 1, &d, &e);
    mem_free(memory);
    assert_null(memory);
    assert_int_equal(err_status(&e), EXIT_USER);
    assert_says(&e, a);
    assert_says(&e, b);
}

static void bad_lists(void **state) {
    (void)state;
    need_fftw("bad_lists");
    static const struct {
        const char *line, *says;
    } lines[] = {
        {"", "train.txt names no recordings"},
        {" \n\r\n", "train.txt names no recordings"},
        {"a.wav", "train.txt: line 1 has no transcript"},
        {"a.wav\t \n", "train.txt: line 1 has no transcript"},
        {"a.wav yes\nz.wav yes", "train.txt: line 2 names"},
        {"a.wav yes\nz.wav yes", "z.wav, which cannot be read: No such file"},
        {". yes", "which is not a file"},
        {" a.wav yes", "train.txt: line 1 does not begin with the name of a file"},
        {"\tyes", "train.txt: line 1 does not begin with the name of a file"},
        {"a.wav 1st", "train.txt: the transcript in line 1 has \"1\""},
        {"a.wav yes\n\nb c.wav no", "train.txt: line 3 names"},
        {"a.wav YES.", "has \".\"; letters of English"},
    };
    char *dir = make_set();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        put_text(dir, "train.txt", lines[i].line);
        refused(dir, lines[i].says, "train.txt");
    }
    write_bytes(dir, "train.txt", "a.wav y\0s", 9);
    refused(dir, "train.txt: line 1 holds a zero byte", "");
    put_text(dir, "train.txt", "a.wav yes");
    put_text(dir, "valid.txt", "");
    refused(dir, "valid.txt names no recordings", "");
    put_text(dir, "valid.txt", "a.wav yes");
    char *test = mem_printf("%s/test.txt", dir), *train = mem_printf("%s/train.txt", dir);
    assert_int_equal(unlink(test), 0);
    refused(dir, test, "No such file");
    assert_int_equal(unlink(train), 0);
    refused(dir, "holds no recordings: looked for train.txt", "--data speech:DIR");
    refused("/nowhere/at/all", "/nowhere/at/all holds no recordings", "");
    mem_free(train);
    mem_free(test);
    remove_tree(dir);
}

static void bad_recordings(void **state) {
    (void)state;
    need_fftw("bad_recordings");
    char *dir = make_set();
    size_t bytes;
    int16_t *sample = make_samples(0, 4000);
    unsigned char *file = make_wav(sample, 4000, &bytes);
    write_bytes(dir, "a.wav", file, 0);
    refused(dir, "a.wav cannot be used: it is not a WAV file; put there one channel of 16 bits at 16 kHz", dir);
    write_bytes(dir, "a.wav", file, bytes - 1);
    refused(dir, "a.wav cannot be used: its header speaks of 8044 bytes and it has 8043 (truncated?)", dir);
    file[22] = 2;
    write_bytes(dir, "a.wav", file, bytes);
    refused(dir, "a.wav cannot be used: it has 2 channels, not 1", dir);
    write_wav(dir, "a.wav", 0, 0);
    refused(dir, "a.wav has no samples", "train.txt");
    write_wav(dir, "a.wav", 0, 639); /* 4 frames, 2 steps */
    refused(dir, "a.wav is too short for its transcript, in line 1 of", "the 3 characters take 3");
    write_wav(dir, "a.wav", 0, 640);
    struct err e = {0};
    struct dataset d;
    void *memory = load_set(&dataset_speech, dir, 1, &d, &e);
    if (!memory) fail_msg("%s", e.text);
    mem_free(memory);
    mem_free(file);
    mem_free(sample);
    remove_tree(dir);
}

/* A file cut anywhere, or with bits flipped, is refused by name or read; what is read fits into the memory. */
static void damaged(void **state) {
    (void)state;
    need_fftw("damaged");
    char *dir = make_set();
    size_t bytes, loaded = 0;
    int16_t *sample = make_samples(0, 700);
    unsigned char *file = make_wav(sample, 700, &bytes);
    struct rng r = rng_open(5, RNG_TEST, 98);
    for (int trial = 0; trial < 600; trial++) {
        struct err e = {0};
        struct dataset d;
        unsigned char changed[WAV_HEAD + 1400];
        memcpy(changed, file, bytes);
        const bool cut = trial % 3 == 0;
        if (!cut) changed[rng_below(&r, WAV_HEAD)] ^= (unsigned char)(1u << rng_below(&r, 8));
        write_bytes(dir, "a.wav", changed, cut ? rng_below(&r, (uint32_t)bytes) : bytes);
        void *memory = load_set(&dataset_speech, dir, 1, &d, &e);
        assert_false(cut && memory);
        if (!memory) assert_says(&e, "a.wav");
        loaded += memory != NULL;
        mem_free(memory);
    }
    assert_in_range(loaded, 10, 200); /* bytes a second, and fewer samples */
    mem_free(file);
    mem_free(sample);
    remove_tree(dir);
}

/* By its size, before it is read. */
static void an_hour(void **state) {
    (void)state;
    need_fftw("an_hour");
    char *dir = make_set(), *path = mem_printf("%s/a.wav", dir);
    struct dataset d;
    for (int more = 0; more < 2; more++) {
        struct err e = {0};
        assert_int_equal(truncate(path, WAV_HEAD + SPEECH_BYTES_MAX + more), 0);
        assert_int_equal(dataset_find(&dataset_speech, dir, 1, &d, &e), !more);
        if (more) assert_says(&e, "a.wav is longer than an hour; cut it");
    }
    mem_free(path);
    remove_tree(dir);
}

static void growing(void **state) {
    (void)state;
    need_fftw("growing");
    char *dir = make_set();
    struct err e = {0};
    struct dataset d;
    assert_true(dataset_find(&dataset_speech, dir, 1, &d, &e));
    void *memory = malloc(d.bytes);
    assert_non_null(memory);
    write_wav(dir, "a.wav", 0, 9000);
    assert_false(dataset_load(&d, memory, &e));
    assert_says(&e, "grew while they were read; start again");
    free(memory);
    remove_tree(dir);
}

/* A file that grows after its size was asked for. */
static void reads_no_more(void **state) {
    (void)state;
    char *dir = make_directory(), *path = mem_printf("%s/file", dir);
    write_bytes(dir, "file", "12345", 5);
    for (uint64_t most = 0; most < 9; most++) {
        struct err e = {0};
        size_t bytes;
        unsigned char *file = speech_read(path, most, &bytes, &e);
        assert_int_equal(file != NULL, most >= 5);
        if (file) {
            assert_int_equal(bytes, 5);
            assert_memory_equal(file, "12345", 5);
        } else {
            assert_says(&e, "file grew while it was read; start again");
        }
        mem_free(file);
    }
    mem_free(path);
    remove_tree(dir);
}

static void without_fftw(void **state) {
    (void)state;
    struct err e = {0}, why = {0};
    struct dataset d;
    if (spectrogram_is_here(&why)) { /* the others of these tests see that it works */
        assert_string_equal(why.text, "");
        return;
    }
    assert_false(dataset_find(&dataset_speech, "build/data", 1, &d, &e));
    assert_says(&e, "this build lacks FFTW");
    memset(&e, 0, sizeof e);
    assert_false(dataset_find(&dataset_an4, "build/data", 1, &d, &e));
    assert_says(&e, "this build lacks FFTW");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads),          cmocka_unit_test(bad_lists),
                                       cmocka_unit_test(bad_recordings), cmocka_unit_test(damaged),
                                       cmocka_unit_test(an_hour),        cmocka_unit_test(growing),
                                       cmocka_unit_test(reads_no_more),  cmocka_unit_test(without_fftw)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
