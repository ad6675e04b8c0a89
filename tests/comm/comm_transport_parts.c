/* comm_transport_parts.c: the cases of comm_transport.c where every message above 64 bytes goes the way of those
 * above 1 GiB.
 * ranks: 1 2 3 5 8 */
#define PART_BYTES "64"
#include "tests/comm/comm_transport.c"
