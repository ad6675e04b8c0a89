"""common.py: what the scripts of golden values share: the project's random numbers (base/rng.h), written again, so that
no data has to be kept; and which entries of a slice the values are taken of."""

import numpy

SEED = 5
INIT, DROPOUT, TEST = 1, 5, 7  # enum rng_stream of base/rng.h


def words(stream, index, count, first=0):
    """`count` words of Philox4x32-10 as rng_open(SEED, stream, index) gives them, from block `first` of four words on."""
    blocks = (count + 3) // 4
    c = [numpy.arange(first, first + blocks, dtype=numpy.uint64)] + [
        numpy.full(blocks, v, dtype=numpy.uint64) for v in (stream, index & 0xFFFFFFFF, index >> 32)
    ]
    low = numpy.uint64(0xFFFFFFFF)
    shift = numpy.uint64(32)
    key = [SEED & 0xFFFFFFFF, SEED >> 32]
    for _ in range(10):
        p0, p1 = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(p1 >> shift) ^ c[1] ^ numpy.uint64(key[0]), p1 & low, (p0 >> shift) ^ c[3] ^ numpy.uint64(key[1]), p0 & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return numpy.stack(c, axis=1).reshape(-1)[:count]


def normals(stream, index, count, first=0):
    """rng_normal, `count` times, after `first` times: four words each."""
    w = words(stream, index, 4 * count, first).reshape(count, 2, 2)
    uniform = (((w[:, :, 0] << numpy.uint64(32)) | w[:, :, 1]) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53
    return numpy.sqrt(-2.0 * numpy.log(1.0 - uniform[:, 0])) * numpy.cos(6.283185307179586 * uniform[:, 1])


def sample(n):
    """Indices of the entries that are kept of a slice of n."""
    return [0, n // 3, n - 1]


def numbers(values):
    return ", ".join(f"{v:.17g}" for v in values)
