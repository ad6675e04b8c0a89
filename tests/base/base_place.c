/* base_place.c: where parts of the program are looked for, by where its own file lies: this program copies itself into
 * a prefix, a clone, or a folder with nothing around it, and asks from there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/place.h"
#include "base/mem.h"

/* The quote and the space are for the commands that are to be typed. */
static char top[] = "/tmp/sparsetrain it's place.XXXXXX", text[4 * PLACE_MAX];

static const char *at(const char *name) {
    static char path[PLACE_MAX];
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

/* Every folder on the way, and a file there: a script that says its name and first argument; "": none. */
static void put(const char *folder, const char *file) {
    char *path = mem_printf("%s/%s/%s", top, folder, file);
    for (char *slash = path + strlen(top) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
    }
    FILE *f = *file ? fopen(path, "w") : NULL;
    mem_free(path);
    if (!*file) return;
    assert_non_null(f);
    fprintf(f, "echo %s $1\n", file);
    assert_int_equal(fclose(f), 0);
}

static void install_self(const char *folder) {
    char block[4096], *to = mem_printf("%s/%s/place", top, folder);
    put(folder, "place");
    FILE *from = fopen("/proc/self/exe", "rb"), *copy = fopen(to, "wb");
    assert_true(from && copy);
    for (size_t n; (n = fread(block, 1, sizeof block, from)) > 0;) assert_int_equal(fwrite(block, 1, n, copy), n);
    fclose(from);
    assert_int_equal(fclose(copy), 0);
    assert_int_equal(chmod(to, 0755), 0);
    mem_free(to);
}

/* What the copy in `folder` of the top says, asked in `here`, or what a shell says to a command. */
static const char *output_of(char *command) {
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    assert_int_equal(pclose(f), 0);
    mem_free(command);
    return text;
}

static const char *says(const char *folder, const char *here, const char *what, const char *name) {
    return output_of(mem_printf("cd \"%s/%s\" && \"%s/%s/place\" %s %s", top, here, top, folder, what, name));
}

static int make_top(void **state) {
    (void)state;
    if (!mkdtemp(top)) return -1;
    put("prefix/share/sparsetrain/scripts", "fetch-data.sh");
    put("prefix/share/doc/sparsetrain/docs", "page.md");
    install_self("prefix/bin");
    put("clone/scripts", "fetch-data.sh");
    put("clone/docs", "page.md");
    install_self("clone/build/san-x/tests");
    install_self("alone/1/2/3/4/5");
    install_self("shallow");
    put("here/build/data", "");
    put("there", "");
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    return 0;
}

static int remove_top(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r \"%s\"", top);
    return system(command);
}

static void parts_of_an_installed_copy(void **state) {
    (void)state;
    assert_string_equal(says("prefix/bin", "there", "of", "docs/page.md"),
                        at("prefix/share/doc/sparsetrain/docs/page.md"));
    assert_string_equal(says("prefix/bin", "clone", "of", "docs/page.md"),
                        at("prefix/share/doc/sparsetrain/docs/page.md"));
    assert_string_equal(says("prefix/bin", "there", "of", "scripts/fetch-data.sh"),
                        at("prefix/share/sparsetrain/scripts/fetch-data.sh"));
    assert_string_equal(says("prefix/bin", "there", "of", "docs/none.md"), "docs/none.md");
}

static void parts_of_a_clone(void **state) {
    (void)state;
    assert_string_equal(says("clone/build/san-x/tests", "there", "of", "docs/page.md"), at("clone/docs/page.md"));
    assert_string_equal(says("clone/build/san-x/tests", "clone", "of", "docs/page.md"), "docs/page.md");
    assert_string_equal(says("clone/build/san-x/tests", "there", "of", "docs/none.md"), "docs/none.md");
    put("there/docs", "page.md"); /* another file of that name */
    assert_string_equal(says("clone/build/san-x/tests", "there", "of", "docs/page.md"), at("clone/docs/page.md"));
}

static void nothing_around(void **state) {
    (void)state;
    static const char *const folders[] = {"alone/1/2/3/4/5", "shallow"};
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(says(folders[i], "clone", "of", "docs/page.md"), "docs/page.md");
        assert_string_equal(says(folders[i], "there", "script", "fetch-data.sh"), "sh scripts/fetch-data.sh");
        assert_string_equal(says(folders[i], "there", "data", ""), "build/data");
    }
}

/* The code of this program lies in the program's file; tests/gpu/cli_plugin.sh has a library's. */
static void the_file_that_code_was_loaded_from(void **state) {
    (void)state;
    assert_string_equal(says("prefix/bin", "there", "library", ""), at("prefix/bin/"));
}

/* As it is said it can be typed. */
static void commands_are_quoted(void **state) {
    (void)state;
    char *command = mem_printf("%s", says("prefix/bin", "there", "script", "fetch-data.sh"));
    assert_non_null(strstr(command, "'/tmp/sparsetrain it'\\''s place."));
    assert_string_equal(output_of(command), "fetch-data.sh\n");
    command = mem_printf("%s", says("prefix/bin", "there", "fetch", "ptb"));
    assert_string_equal(output_of(command), "fetch-data.sh ptb\n");
    command = mem_printf("%s", says("clone/build/san-x/tests", "there", "fetch", "cifar10"));
    assert_string_equal(output_of(command), "fetch-data.sh cifar10\n");
}

static void data_of_an_installed_copy(void **state) {
    (void)state;
    assert_string_equal(says("prefix/bin", "here", "data", ""), at("prefix/share/sparsetrain/data"));
    setenv("HOME", "/home/me", 1);
    assert_string_equal(says("prefix/bin", "here", "data", ""), "/home/me/.local/share/sparsetrain");
    setenv("XDG_DATA_HOME", "/large", 1);
    assert_string_equal(says("prefix/bin", "here", "data", ""), "/large/sparsetrain");
    setenv("XDG_DATA_HOME", "not/from/the/root", 1); /* is to be ignored, says its specification */
    assert_string_equal(says("prefix/bin", "here", "data", ""), "/home/me/.local/share/sparsetrain");
    setenv("XDG_DATA_HOME", "", 1);
    setenv("HOME", "", 1);
    assert_string_equal(says("prefix/bin", "here", "data", ""), at("prefix/share/sparsetrain/data"));
    char *longer = mem_alloc(PLACE_MAX + 1, 1, "a long name");
    memset(longer, 'x', PLACE_MAX);
    longer[0] = '/', longer[PLACE_MAX] = 0;
    setenv("XDG_DATA_HOME", longer, 1); /* than a path may be */
    assert_string_equal(says("prefix/bin", "here", "data", ""), "build/data");
    mem_free(longer);
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
}

static void data_of_a_clone(void **state) {
    (void)state;
    setenv("HOME", "/home/me", 1); /* is for installed ones */
    assert_string_equal(says("clone/build/san-x/tests", "there", "data", ""), "build/data");
    put("clone/build/data", "");
    assert_string_equal(says("clone/build/san-x/tests", "there", "data", ""), at("clone/build/data"));
    assert_string_equal(says("clone/build/san-x/tests", "here", "data", ""), "build/data");
    unsetenv("HOME");
}

static void cache_by_the_environment(void **state) {
    (void)state;
    static const char *const expected[] = {"/own", "/xdg/sparsetrain", "/home/me/.cache/sparsetrain", NULL};
    static const char *const name[] = {"SPARSETRAIN_CACHE", "XDG_CACHE_HOME", "HOME"};
    static const char *const value[] = {"/own", "/xdg", "/home/me"};
    const char *before = getenv(name[0]);
    char *kept = before ? mem_printf("%s", before) : NULL;
    for (int i = 0; i < 3; i++) setenv(name[i], value[i], 1);
    for (int i = 0; i < 4; i++) {
        char *folder = place_cache();
        if (expected[i])
            assert_string_equal(folder, expected[i]);
        else
            assert_null(folder);
        mem_free(folder);
        if (i < 3) setenv(name[i], "", 1); /* as good as none */
    }
    for (int i = 0; i < 3; i++) unsetenv(name[i]);
    if (kept) setenv(name[0], kept, 1);
    mem_free(kept);
}

static void folders_are_made(void **state) {
    (void)state;
    char *path = mem_printf("%s", at("made/of/three/file"));
    FILE *f = fopen(path, "w");
    assert_null(f);
    for (int i = 0; i < 2; i++) place_make_folders(path); /* again: they are there */
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    mem_free(path);
    place_make_folders("");
}

/* A copy's answer. */
static int answer(const char *what, const char *name) {
    char path[PLACE_MAX];
    if (strcmp(what, "of") == 0) fputs(place_of(name, path), stdout);
    if (strcmp(what, "script") == 0) fputs(place_script(name), stdout);
    if (strcmp(what, "fetch") == 0) fputs(place_fetch(name), stdout);
    if (strcmp(what, "data") == 0) fputs(place_data(), stdout);
    if (strcmp(what, "library") == 0) place_library(path), fputs(path, stdout);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return answer(argv[1], argc > 2 ? argv[2] : "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_an_installed_copy),
        cmocka_unit_test(parts_of_a_clone),
        cmocka_unit_test(nothing_around),
        cmocka_unit_test(the_file_that_code_was_loaded_from),
        cmocka_unit_test(commands_are_quoted),
        cmocka_unit_test(data_of_an_installed_copy),
        cmocka_unit_test(data_of_a_clone),
        cmocka_unit_test(cache_by_the_environment),
        cmocka_unit_test(folders_are_made),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
