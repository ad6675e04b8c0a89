/* links.h: links of one rate and one-way delay that join nodes through a switch: when does a packet arrive?
 * Arithmetic and queues alone, over a clock that the caller reads (scripts/netlab/switch.c).
 *
 * A packet of w bytes that node s hands over at time t for node d:
 *
 *     leaves      e = max(t, end of the last one from s) + w / rate            the wire from s to the switch
 *     arrives     a = e + delay                                                its last byte; enters the queue of d
 *     is there    max(a, end of the last one to d + w / rate)                  the wire from the switch to d
 *
 * The two directions of a link know nothing of each other (full duplex). The switch passes a packet on while it still
 * comes in (cut-through), so that a lone packet pays for its length once: alpha + beta m. Where several senders meet,
 * the wire to d is shared in the order of arrival, and what would wait behind more than LINKS_BUFFER bytes is dropped,
 * as by the buffer of a switch's port. A sender is not dropped but held back: links_ready.
 *
 *     links_open(&l, 4, 125e6, 400e-6);
 *     struct packet *p = links_packet(bytes);         // then p->from, to, wire and data
 *     links_send(&l, p, clock_now());                 // p belongs to the links
 *     while ((p = links_due(&l, clock_now()))) ...    // p belongs to the caller: mem_free
 *     links_close(&l);
 */
#ifndef ST_SCRIPTS_NETLAB_LINKS_H
#define ST_SCRIPTS_NETLAB_LINKS_H

#include <stdbool.h>
#include <stddef.h>

enum { LINKS_NODES_MAX = 64 };
enum { LINKS_BUFFER = 4 << 20 };        /* of each port to a node [bytes], as the packet buffers of small switches */
enum { LINKS_FRAME = 14 + 4 + 8 + 12 }; /* Ethernet around a packet: header, checksum, preamble, gap [bytes] */
#define LINKS_AHEAD 2e-3                /* how much of a sender's wire may be booked [s] */

struct packet {
    struct packet *next;
    double due;           /* [s]: when it arrives; then, when it is there */
    double wire;          /* what it takes on a wire [bytes] */
    size_t from, to;      /* nodes */
    size_t bytes;         /* of data */
    unsigned char data[]; /* the caller's */
};

/* First in, first out; due never falls from head to tail. */
struct queue {
    struct packet *head, *tail;
};

struct links {
    size_t nodes, dropped;
    double rate, delay; /* [bytes/s], [s] */
    struct link {
        double sends_until, receives_until; /* when its two wires are free again [s] */
        struct queue flight;                /* from this node, not yet at the ports they are for */
        struct queue inbound;               /* to this node, on its wire or waiting for it */
        double waiting;                     /* all of inbound [bytes on the wire] */
    } link[LINKS_NODES_MAX];
};

void links_open(struct links *l, size_t nodes, double rate, double delay);
void links_close(struct links *l);

struct packet *links_packet(size_t bytes);

/* Times given to these never fall from call to call. */
bool links_ready(const struct links *l, size_t from, double now);
void links_send(struct links *l, struct packet *p, double now);

/* The first of the packets that are there by now; NULL: none is. */
struct packet *links_due(struct links *l, double now);

/* The next time at which links_due or links_ready will have something to say that they do not say now; INFINITY: never.
 */
double links_wake(const struct links *l, double now);

/* Bytes on the wire of an IPv4 packet; piece > 0: of TCP's, to be cut into pieces of this much payload, each with the
 * packet's headers. */
double links_wire_bytes(const unsigned char *ip, size_t bytes, size_t piece);

#endif
