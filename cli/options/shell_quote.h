/* shell_quote.h: words as a shell must be given them, for messages that say what to type. */
#ifndef ST_CLI_SHELL_QUOTE_H
#define ST_CLI_SHELL_QUOTE_H

/* The word itself, or in single quotes where a shell would take it for more, or other, than that: fresh memory. */
char *shell_quote(const char *word);

#endif
