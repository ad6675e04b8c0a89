/* gzip.c: see gzip.h. zlib inflates and checks the CRC-32 of each gzip member (RFC 1952). zlib's own gz* functions are
 * simpler, but do not notice a missing trailer when their buffer is just full at the end of the data. */
#include "data/gzip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/files/file.h"
#include "base/mem.h"

enum { INPUT = 256 << 10, GZIP_ONLY = 15 + 16 };

struct gzip {
    FILE *file;
    z_stream z;
    bool between; /* a gzip member has just ended */
    bool ended;   /* so has the last one */
    char path[512];
    unsigned char input[INPUT];
};

static bool damaged(const struct gzip *g, struct err *e, const char *what) {
    return err_set(e, "%s is damaged: %s", g->path, what);
}

/* Reads more compressed bytes. The end of the file is regular between two gzip members and damage anywhere else. */
static bool refill(struct gzip *g, struct err *e) {
    errno = 0;
    g->z.next_in = g->input;
    g->z.avail_in = (uInt)fread(g->input, 1, INPUT, g->file);
    if (g->z.avail_in) return true;
    if (ferror(g->file)) return err_with(e, err_of_errno(errno), "cannot read %s: %s", g->path, strerror(errno));
    g->ended = g->between;
    return g->ended || damaged(g, e, "it ends too early (truncated?)");
}

bool gzip_read(struct gzip *g, void *to, size_t bytes, size_t *got, struct err *e) {
    z_stream *z = &g->z;
    z->next_out = to;
    z->avail_out = (uInt)bytes;
    while (z->avail_out && !g->ended) {
        if (!z->avail_in && !refill(g, e)) return false;
        if (g->ended) break;
        if (g->between) {
            g->between = false;
            if (*z->next_in != 0x1f)
                g->ended = true; /* padding, as after a copy from tape: gzip ignores it too */
            else
                inflateReset(z);
            continue;
        }
        int code = inflate(z, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            g->between = true;
        else if (code == Z_MEM_ERROR)
            die("no memory for inflating %s", g->path);
        else if (code != Z_OK && code != Z_BUF_ERROR)
            return damaged(g, e, z->msg ? z->msg : "it cannot be inflated");
    }
    *got = bytes - z->avail_out;
    return true;
}

struct gzip *gzip_open(const char *path, struct err *e) {
    struct gzip *g = mem_zalloc(1, sizeof *g, "a gzip reader");
    snprintf(g->path, sizeof g->path, "%s", path);
    if (inflateInit2(&g->z, GZIP_ONLY) != Z_OK) die("cannot start zlib %s", zlibVersion());
    const char *reason;
    g->file = file_read(path, &reason);
    if (!g->file)
        err_with(e, err_of_errno(errno), "cannot read %s: %s", path, reason);
    else if (!refill(g, e) || g->z.avail_in < 2 || g->input[0] != 0x1f || g->input[1] != 0x8b)
        err_set(e, "%s is not a gzip file", path);
    else
        return g;
    gzip_close(g);
    return NULL;
}

void gzip_close(struct gzip *g) {
    if (!g) return;
    if (g->file) fclose(g->file);
    inflateEnd(&g->z);
    mem_free(g);
}

/* The last four bytes of a gzip file are ISIZE, the length of what was packed modulo 2^32 (RFC 1952, 2.3.1). Deflate
 * packs at most 1032:1, so that a cut-off file is often seen here. */
bool gzip_unpacked_size(const char *path, uint64_t *bytes, struct err *e) {
    unsigned char head[2], tail[4];
    const char *why;
    FILE *f = file_read(path, &why);
    if (!f) return err_with(e, err_of_errno(errno), "cannot read %s: %s", path, why);
    long size = -1;
    errno = 0;
    bool read = fread(head, 1, 2, f) == 2 && fseek(f, -4, SEEK_END) == 0 && fread(tail, 1, 4, f) == 4;
    int reason = ferror(f) ? errno : 0;
    if (read) size = ftell(f);
    fclose(f);
    if (reason) return err_with(e, err_of_errno(reason), "cannot read %s: %s", path, strerror(reason));
    if (!read || head[0] != 0x1f || head[1] != 0x8b) return err_set(e, "%s is not a gzip file", path);
    *bytes = tail[0] | (uint64_t)tail[1] << 8 | (uint64_t)tail[2] << 16 | (uint64_t)tail[3] << 24;
    if (*bytes / 1032 > (uint64_t)size)
        return err_set(e, "%s (%ld bytes) is damaged: it does not end as a .gz does (truncated?)", path, size);
    return true;
}
