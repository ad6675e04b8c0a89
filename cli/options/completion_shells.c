/* completion_shells.c: the offers of completion.h written out as bash and as zsh read them. What is below as text does
 * not depend on any table. */
#include <string.h>

#include "cli/options/completion.h"
#include "cli/version.h"

static const char *const kind_names[] = {[OFFER_FLAG] = "flag",     [OFFER_NONE] = "none",   [OFFER_FILE] = "file",
                                         [OFFER_FOLDER] = "folder", [OFFER_WORDS] = "words", [OFFER_LIST] = "list"};

/* -- bash ---------------------------------------------------------------------------------------------------------- */
/* $1 of the first function is a verb, $1 and $2 of the second a verb and an option; names hold no quotes. */
static void bash_tables(FILE *stream) {
    struct offer o;
    fputs("_sparsetrain_verbs=(", stream);
    for (size_t v = 0; v < verb_rows; v++) fprintf(stream, "%s'%s'", v ? " " : "", verb_table[v].words);
    fputs(")\n\n_sparsetrain_options() {\n    case $1 in\n", stream);
    for (size_t v = 0; v < verb_rows; v++) {
        if (!offer_at(&verb_table[v], 0, &o)) continue;
        fprintf(stream, "    '%s') echo '", verb_table[v].words);
        for (size_t i = 0; offer_at(&verb_table[v], i, &o); i++) fprintf(stream, "%s--%s", i ? " " : "", o.name);
        fputs("' ;;\n", stream);
    }
    fputs("    esac\n}\n\n_sparsetrain_values() {\n    case \"$1 $2\" in\n", stream);
    for (size_t v = 0; v < verb_rows; v++)
        for (size_t i = 0; offer_at(&verb_table[v], i, &o); i++)
            if (o.kind != OFFER_FLAG)
                fprintf(stream, "    '%s --%s') echo '%s%s%s' ;;\n", verb_table[v].words, o.name, kind_names[o.kind],
                        *o.words ? " " : "", o.words);
    fputs("    *) echo flag ;;\n    esac\n}\n\n", stream);
}

static const char bash_function[] =
    "_sparsetrain() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at=-1 verb=train i v kind words "
    "before\n"
    "    local -a next=()\n"
    "    COMPREPLY=()\n"
    "    # Behind a launcher (mpirun -np 4 sparsetrain ...) only the words after the program are ours.\n"
    "    for ((i = 0; i < COMP_CWORD; i++)); do\n"
    "        if [[ ${COMP_WORDS[i]##*/} == sparsetrain ]]; then at=$i && break; fi\n"
    "    done\n"
    "    ((at >= 0)) || return 0\n"
    "    local one=${COMP_WORDS[at + 1]-} two=${COMP_WORDS[at + 2]-}\n"
    "    for v in \"${_sparsetrain_verbs[@]}\"; do\n"
    "        if ((COMP_CWORD > at + 1)) && [[ $v == \"$one\" ]]; then verb=$v; fi\n"
    "    done\n"
    "    for v in \"${_sparsetrain_verbs[@]}\"; do\n"
    "        if ((COMP_CWORD > at + 2)) && [[ $v == \"$one $two\" ]]; then verb=$v; fi\n"
    "    done\n"
    "    # --option=value comes as three words.\n"
    "    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
    "    if [[ $prev == --* ]]; then\n"
    "        read -r kind words <<<\"$(_sparsetrain_values \"$verb\" \"$prev\")\"\n"
    "        case $kind in\n"
    "        words) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\") ;;\n"
    "        list)\n"
    "            before=\n"
    "            if [[ $cur == *,* ]]; then before=${cur%,*},; fi\n"
    "            mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- \"${cur##*,}\")\n"
    "            compopt -o nospace 2>/dev/null\n"
    "            ;;\n"
    "        folder)\n"
    "            mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            ;;\n"
    "        none) compopt +o default +o bashdefault 2>/dev/null ;;\n"
    "        esac\n"
    "        if [[ ${COMPREPLY[0]-} == *: ]]; then compopt -o nospace 2>/dev/null; fi\n"
    "        if [[ $kind != flag ]]; then return 0; fi # files: what bash itself offers\n"
    "    fi\n"
    "    for v in \"${_sparsetrain_verbs[@]}\"; do\n"
    "        if [[ $cur == -* ]]; then break; fi\n"
    "        if ((COMP_CWORD == at + 1)); then next+=(\"${v%% *}\"); fi\n"
    "        if ((COMP_CWORD == at + 2)) && [[ $v == \"$one \"* ]]; then next+=(\"${v#* }\"); fi\n"
    "    done\n"
    "    if ((${#next[@]} == 0)); then next=(\"$(_sparsetrain_options \"$verb\")\"); fi\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"${next[*]}\" -- \"$cur\")\n"
    "}\n"
    "complete -o bashdefault -o default -F _sparsetrain sparsetrain\n";

void completion_bash(FILE *stream) {
    fprintf(stream,
            "# bash completion of sparsetrain %s, made from its tables by: sparsetrain completion bash\n"
            "# Also behind a launcher: complete -o bashdefault -o default -F _sparsetrain mpirun\n",
            version_number());
    bash_tables(stream);
    fputs(bash_function, stream);
}

/* -- zsh ----------------------------------------------------------------------------------------------------------- */
/* Text inside single quotes, where zsh's _arguments takes each of `special` by itself. */
static void zsh_text(FILE *stream, const char *text, const char *special) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", stream);
        else if (strchr(special, *text))
            fputc('\\', stream);
        fputc(*text, stream);
    }
}

static const char *const actions[] = {[OFFER_NONE] = " ",
                                      [OFFER_FILE] = "_files",
                                      [OFFER_FOLDER] = "_files -/",
                                      [OFFER_WORDS] = "(",
                                      [OFFER_LIST] = "_sequence compadd - "};

/* '--name[what it does]:ARGUMENT:what zsh offers for it' */
static void zsh_option(FILE *stream, const struct offer *o, const char *equals) {
    fprintf(stream, " \\\n        '--%s%s[", o->name, o->kind == OFFER_FLAG ? "" : equals);
    zsh_text(stream, o->about, "[]\\");
    fputc(']', stream);
    if (o->kind != OFFER_FLAG) {
        fputc(':', stream);
        zsh_text(stream, o->argument, ":\\");
        fprintf(stream, ":%s", actions[o->kind]);
        zsh_text(stream, o->words, ":\\");
        if (o->kind == OFFER_WORDS) fputc(')', stream);
    }
    fputc('\'', stream);
}

/* The name of the function that completes a verb's options. */
static void zsh_name(FILE *stream, const char *words) {
    fputs("_sparsetrain_", stream);
    for (; *words; words++) fputc(*words == ' ' ? '_' : *words, stream);
}

static void zsh_options(FILE *stream, const struct verb_row *verb) {
    struct offer o;
    zsh_name(stream, verb->words);
    fputs(" () {\n    _arguments", stream);
    if (offer_operand(verb, &o)) fprintf(stream, " \\\n        ':%s:%s'", o.name, actions[o.kind]);
    for (size_t i = 0; offer_at(verb, i, &o); i++) zsh_option(stream, &o, offers_table(verb) ? "=" : "");
    fputs("\n}\n\n", stream);
}

/* 'word:what it does', once for each word: of all verbs their first (first NULL), or of those that begin with `first`
 * their second. */
static void zsh_words(FILE *stream, const char *first) {
    const char *last = "";
    for (size_t v = 0; v < verb_rows; v++) {
        const char *words = verb_table[v].words, *blank = strchr(words, ' ');
        size_t length = strcspn(words, " ");
        if (first && (!blank || strncmp(words, first, length) != 0 || first[length])) continue;
        if (!first && strncmp(words, last, length) == 0 && (last[length] == ' ' || !last[length])) continue;
        last = words;
        fprintf(stream, " '%.*s:", first ? (int)strlen(blank + 1) : (int)length, first ? blank + 1 : words);
        zsh_text(stream, verb_table[v].summary, "");
        fputc('\'', stream);
    }
}

static void zsh_function(FILE *stream) {
    fputs("_sparsetrain () {\n    local -a verbs=()\n    case $CURRENT:$words[2] in\n    2:*) verbs=(", stream);
    zsh_words(stream, NULL);
    fputs(" ) ;;\n", stream);
    for (size_t v = 0; v < verb_rows; v++) {
        const char *words = verb_table[v].words;
        size_t length = strcspn(words, " ");
        if (!words[length] || (v > 0 && strncmp(verb_table[v - 1].words, words, length + 1) == 0)) continue;
        char first[32];
        snprintf(first, sizeof first, "%.*s", (int)length, words);
        fprintf(stream, "    3:%s) verbs=(", first);
        zsh_words(stream, first);
        fputs(" ) ;;\n", stream);
    }
    fputs("    esac\n    if (( $#verbs )) && [[ $PREFIX != -* ]]; then _describe -t verbs verb verbs; return; fi\n"
          "    case \"$words[2] $words[3]\" in\n",
          stream);
    for (int two = 1; two >= 0; two--) /* two words before one: bench select is no bench */
        for (size_t v = 0; v < verb_rows; v++) {
            struct offer o;
            const char *words = verb_table[v].words;
            if ((strchr(words, ' ') != NULL) != two) continue;
            fprintf(stream, "    '%s%s) shift %d words; (( CURRENT -= %d )); ", words, two ? "'" : " '*", two + 1,
                    two + 1);
            if (offer_at(&verb_table[v], 0, &o))
                zsh_name(stream, words);
            else
                fputs("_message 'no options'", stream);
            fputs(" ;;\n", stream);
        }
    fputs("    *) _sparsetrain_train ;;\n    esac\n}\n\n_sparsetrain \"$@\"\n", stream);
}

void completion_zsh(FILE *stream) {
    struct offer o;
    fprintf(stream,
            "#compdef sparsetrain\n# zsh completion of sparsetrain %s, made from its tables by: sparsetrain completion "
            "zsh\n\n",
            version_number());
    for (size_t v = 0; v < verb_rows; v++)
        if (offer_at(&verb_table[v], 0, &o)) zsh_options(stream, &verb_table[v]);
    zsh_function(stream);
}
