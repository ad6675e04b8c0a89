/* shell_quote.c: see shell_quote.h. */
#include "cli/options/shell_quote.h"

#include <string.h>

#include "base/mem.h"

char *shell_quote(const char *word) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,+@%=-";
    if (*word && strspn(word, plain) == strlen(word)) return mem_printf("%s", word);
    char *quoted = mem_alloc(4 * strlen(word) + 3, 1, "a word for the shell"), *to = quoted;
    *to++ = '\'';
    for (; *word; word++) {
        if (*word == '\'') { /* 'it'\''s' */
            memcpy(to, "'\\'", 3);
            to += 3;
        }
        *to++ = *word;
    }
    *to++ = '\'';
    *to = '\0';
    return quoted;
}
