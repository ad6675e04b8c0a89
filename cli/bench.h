/* bench.h: the benches, `sparsetrain bench WHAT ...`. Each prints a table (or one JSON object per row) of
 * medians of interleaved runs, and checks what it times: the row says how many results were wrong. */
#ifndef ST_CLI_BENCH_H
#define ST_CLI_BENCH_H

/* `sparsetrain bench select`: accumulation plus selection, next to a plain accumulation and a read of the same
 * array. argv[0] is the word "select", options follow. Returns an exit status. */
int bench_select(int argc, char **argv);

#endif
