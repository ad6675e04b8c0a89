/* links.c: see links.h. */
#include "scripts/netlab/links.h"

#include <math.h>

#include "base/mem.h"

static void push(struct queue *q, struct packet *p) {
    p->next = NULL;
    if (q->head)
        q->tail->next = p;
    else
        q->head = p;
    q->tail = p;
}

static struct packet *pop(struct queue *q) {
    struct packet *p = q->head;
    q->head = p->next;
    return p;
}

static double head_due(const struct queue *q) {
    return q->head ? q->head->due : INFINITY;
}

void links_open(struct links *l, size_t nodes, double rate, double delay) {
    *l = (struct links){.nodes = nodes, .rate = rate, .delay = delay};
}

void links_close(struct links *l) {
    for (size_t i = 0; i < l->nodes; i++) {
        while (l->link[i].flight.head) mem_free(pop(&l->link[i].flight));
        while (l->link[i].inbound.head) mem_free(pop(&l->link[i].inbound));
    }
}

struct packet *links_packet(size_t bytes) {
    struct packet *p = mem_alloc(1, sizeof *p + bytes, "a packet");
    p->bytes = bytes;
    return p;
}

bool links_ready(const struct links *l, size_t from, double now) {
    return l->link[from].sends_until - now < LINKS_AHEAD;
}

void links_send(struct links *l, struct packet *p, double now) {
    struct link *sender = &l->link[p->from];
    sender->sends_until = fmax(now, sender->sends_until) + p->wire / l->rate;
    p->due = sender->sends_until + l->delay;
    push(&sender->flight, p);
}

static void arrive(struct links *l, struct packet *p) {
    struct link *receiver = &l->link[p->to];
    if (receiver->waiting + p->wire > LINKS_BUFFER) {
        l->dropped++;
        mem_free(p);
        return;
    }
    p->due = receiver->receives_until = fmax(p->due, receiver->receives_until + p->wire / l->rate);
    receiver->waiting += p->wire;
    push(&receiver->inbound, p);
}

/* Arrivals and ends in the order of their times, so that what is dropped does not depend on how often the caller asks.
 */
struct packet *links_due(struct links *l, double now) {
    for (;;) {
        struct link *flying = l->link, *there = l->link;
        for (struct link *i = l->link + 1; i < l->link + l->nodes; i++) {
            if (head_due(&i->flight) < head_due(&flying->flight)) flying = i;
            if (head_due(&i->inbound) < head_due(&there->inbound)) there = i;
        }
        double arrival = head_due(&flying->flight), due = head_due(&there->inbound);
        if (fmin(arrival, due) > now) return NULL;
        if (due <= arrival) {
            struct packet *p = pop(&there->inbound);
            there->waiting -= p->wire;
            return p;
        }
        arrive(l, pop(&flying->flight));
    }
}

double links_wake(const struct links *l, double now) {
    double wake = INFINITY;
    for (const struct link *i = l->link; i < l->link + l->nodes; i++) {
        wake = fmin(wake, fmin(head_due(&i->flight), head_due(&i->inbound)));
        /* Half way down, so that a sender with much to send wakes us once for several packets. */
        if (i->sends_until - now >= LINKS_AHEAD) wake = fmin(wake, i->sends_until - LINKS_AHEAD / 2);
    }
    return wake;
}

double links_wire_bytes(const unsigned char *ip, size_t bytes, size_t piece) {
    if (piece == 0) return (double)(bytes + LINKS_FRAME);
    size_t header = (size_t)(ip[0] & 15) * 4;
    if (header + 12 < bytes) header += (size_t)(ip[header + 12] >> 4) * 4; /* TCP says its own */
    size_t payload = bytes > header ? bytes - header : 0;
    size_t pieces = payload > piece ? (payload + piece - 1) / piece : 1;
    return (double)(payload + pieces * (header + LINKS_FRAME));
}
