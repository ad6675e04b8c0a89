/* comm_transport_faults.c: the cases of comm_transport.c with random delays before every call and with synchronous
 * sends.
 * ranks: 1 2 3 5 8 */
#define FAULTS
#include "tests/comm/comm_transport.c"
