/* WAV files: the forms that are read, and every kind of damage: each refusal by its reason, each length that a file can
 * be cut to, each byte of a header as anything else. What is found always lies within the file. */
#include "tests/lib/data_speech_support.h"

#include "data/speech/wav.h"

enum { SAMPLES = 10 };

struct file {
    unsigned char byte[256];
    size_t bytes;
};

static void put(struct file *f, const void *bytes, size_t count) {
    memcpy(f->byte + f->bytes, bytes, count);
    f->bytes += count;
}

/* A chunk, and a byte more where its length is odd. */
static void put_chunk(struct file *f, const char *name, const void *bytes, size_t count) {
    unsigned char length[4];
    put_u32(length, count);
    put(f, name, 4);
    put(f, length, 4);
    put(f, bytes, count);
    if (count % 2) put(f, "", 1);
}

static void begin(struct file *f) {
    f->bytes = 0;
    put(f, "RIFF....WAVE", 12);
}

static void end(struct file *f) {
    put_u32(f->byte + 4, f->bytes - 8);
}

static const unsigned char plain[16] = {1, 0, 1, 0, 0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, 16, 0};
static const unsigned char guid[16] = {1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
static const unsigned char noise[2 * SAMPLES] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

static void expect_noise(const struct file *f) {
    struct err why = {0};
    size_t at, length;
    if (!wav_find(f->byte, f->bytes, &at, &length, &why)) fail_msg("%s", why.text);
    assert_int_equal(length, sizeof noise);
    assert_memory_equal(f->byte + at, noise, sizeof noise);
}

static void make_plain(struct file *f) {
    begin(f);
    put_chunk(f, "fmt ", plain, sizeof plain);
    put_chunk(f, "data", noise, sizeof noise);
    end(f);
}

static void forms(void **state) {
    (void)state;
    struct file f;
    unsigned char extended[40] = {0};
    make_plain(&f);
    assert_int_equal(f.bytes, WAV_HEAD + sizeof noise);
    expect_noise(&f);
    put(&f, "more", 4); /* behind what the header speaks of */
    expect_noise(&f);
    memcpy(extended, plain, sizeof plain);
    begin(&f);
    put_chunk(&f, "fmt ", extended, 18);
    put_chunk(&f, "data", noise, sizeof noise);
    end(&f);
    expect_noise(&f);
    extended[0] = 0xfe, extended[1] = 0xff;
    extended[16] = 22, extended[18] = 16, extended[20] = 4;
    memcpy(extended + 24, guid, sizeof guid);
    begin(&f);
    put_chunk(&f, "LIST", "odd", 3);
    put_chunk(&f, "fmt ", extended, sizeof extended);
    put_chunk(&f, "fact", noise, 4);
    put_chunk(&f, "none", noise, 0);
    put_chunk(&f, "data", noise, sizeof noise);
    put_chunk(&f, "tail", noise, 7);
    end(&f);
    expect_noise(&f);
}

/* As somebody else made them. */
static void like_the_support(void **state) {
    (void)state;
    size_t bytes, at, length;
    struct err why = {0};
    int16_t *sample = make_samples(1, 100);
    unsigned char *file = make_wav(sample, 100, &bytes);
    assert_true(wav_find(file, bytes, &at, &length, &why));
    assert_int_equal(at, WAV_HEAD);
    assert_int_equal(length, 200);
    mem_free(file);
    mem_free(sample);
}

static void refused(const struct file *f, const char *part) {
    struct err why = {0};
    size_t at, length;
    if (wav_find(f->byte, f->bytes, &at, &length, &why)) fail_msg("not refused: %s", part);
    assert_says(&why, part);
}

/* Plain, with one byte changed. */
static void refused_at(size_t at, unsigned char byte, const char *part) {
    struct file f;
    make_plain(&f);
    f.byte[at] = byte;
    refused(&f, part);
}

static void refusals(void **state) {
    (void)state;
    struct file f;
    refused_at(0, 'r', "it is not a WAV file");
    refused_at(8, 'w', "it is not a WAV file");
    refused_at(20, 3, "in format 3, not as plain numbers");
    refused_at(22, 2, "it has 2 channels, not 1");
    refused_at(22, 0, "it has 0 channels, not 1");
    refused_at(24, 0x40, "it has 15936 samples a second, not 16000");
    refused_at(34, 8, "it has samples of 8 bits, not 16");
    refused_at(34, 24, "it has samples of 24 bits");
    refused_at(32, 4, "a sample takes 4 bytes by its header, not 2");
    refused_at(4, 57, "its header speaks of 65 bytes and it has 64 (truncated?)");
    refused_at(7, 0xff, "its header speaks of 4278190144 bytes");
    refused_at(4, 3, "its header speaks of 11 bytes");
    refused_at(16, 14, "its format takes 14 bytes");
    refused_at(12, 'x', "its samples come before their format");
    refused_at(36, 'x', "it has no samples");
    refused_at(40, 21, "a part of it has 21 bytes by its header, and there are 20");
    refused_at(40, 19, "it has 19 bytes of samples, an odd number");
    refused_at(43, 0x80, "a part of it has 2147483668 bytes");
    make_plain(&f);
    f.bytes = 0;
    refused(&f, "it is not a WAV file");
    begin(&f);
    end(&f);
    refused(&f, "it has no samples");
    unsigned char extended[40] = {0xfe, 0xff, 1, 0, 0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, 16, 0};
    begin(&f); /* floats in the extensible form */
    put_chunk(&f, "fmt ", extended, sizeof extended);
    put_chunk(&f, "data", noise, sizeof noise);
    end(&f);
    refused(&f, "in format 65534");
}

static void no_samples(void **state) {
    (void)state;
    struct file f;
    struct err why = {0};
    size_t at, length = 1;
    begin(&f);
    put_chunk(&f, "fmt ", plain, sizeof plain);
    put_chunk(&f, "data", noise, 0);
    end(&f);
    assert_true(wav_find(f.byte, f.bytes, &at, &length, &why));
    assert_int_equal(length, 0);
}

/* In a block of its own length, so that a sanitizer sees what is read beyond it. */
static bool try_bytes(const unsigned char *bytes, size_t count) {
    struct err why = {0};
    size_t at = 0, length = 0;
    unsigned char *file = malloc(count ? count : 1);
    assert_non_null(file);
    memcpy(file, bytes, count);
    const bool good = wav_find(file, count, &at, &length, &why);
    free(file);
    if (good) {
        assert_true(at <= count && length <= count - at && length % 2 == 0);
        assert_string_equal(why.text, "");
    } else {
        assert_true(why.text[0] && !strchr(why.text, '\n'));
    }
    return good;
}

static void every_length(void **state) {
    (void)state;
    struct file f;
    make_plain(&f);
    for (size_t bytes = 0; bytes < f.bytes; bytes++) assert_false(try_bytes(f.byte, bytes));
    assert_true(try_bytes(f.byte, f.bytes));
    for (size_t bytes = 8; bytes < f.bytes; bytes++) { /* with a header that knows */
        put_u32(f.byte + 4, bytes - 8);
        assert_false(try_bytes(f.byte, bytes));
    }
}

static void every_byte(void **state) {
    (void)state;
    struct file f;
    make_plain(&f);
    for (size_t at = 0; at < WAV_HEAD; at++)
        for (int value = 0; value < 256; value++) {
            struct file g = f;
            g.byte[at] = (unsigned char)value;
            const bool same = g.byte[at] == f.byte[at], rate = at >= 28 && at < 32, shorter = at == 40 && value < 20;
            /* the bytes a second say nothing new, and fewer samples are as good */
            assert_int_equal(try_bytes(g.byte, g.bytes), same || rate || (shorter && value % 2 == 0));
        }
}

static void random_damage(void **state) {
    (void)state;
    struct rng r = rng_open(6, RNG_TEST, 0);
    for (int trial = 0; trial < 200000; trial++) {
        struct file f;
        begin(&f);
        for (uint32_t chunks = rng_below(&r, 4); chunks > 0; chunks--) {
            static const char *const name[] = {"fmt ", "data", "LIST"};
            const uint32_t which = rng_below(&r, 3);
            put_chunk(&f, name[which], which ? noise : plain, which ? rng_below(&r, 20) : sizeof plain);
        }
        end(&f);
        for (uint32_t flips = rng_below(&r, 5); flips > 0; flips--)
            f.byte[rng_below(&r, (uint32_t)f.bytes)] ^= (unsigned char)(1u << rng_below(&r, 8));
        try_bytes(f.byte, f.bytes - rng_below(&r, 3));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms),        cmocka_unit_test(like_the_support),
                                       cmocka_unit_test(refusals),     cmocka_unit_test(no_samples),
                                       cmocka_unit_test(every_length), cmocka_unit_test(every_byte),
                                       cmocka_unit_test(random_damage)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
