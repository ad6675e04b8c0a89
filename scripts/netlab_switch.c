/* netlab_switch.c: the switch of scripts/netlab.sh: joins network namespaces by links of one rate and one-way delay.
 *
 *     netlab-switch RATE DELAY LOG NODE... LAUNCHER      rate [bit/s], delay [ns], file, names of namespaces
 *
 * Every namespace has a tun device eth0, made and given its address by the caller: 10.77.0.1 for the first node, and so
 * on; 10.77.0.254 for the launcher. What a namespace sends is read here and written, at its time, into the device of
 * the namespace it is for. A packet of w bytes that node s hands over at time t for node d:
 *
 *     leaves      e = max(t, end of the last one from s) + w / rate            the wire from s to the switch
 *     arrives     a = e + delay                                                its last byte; enters the queue of d
 *     is there    max(a, end of the last one to d + w / rate)                  the wire from the switch to d
 *
 * The two directions of a link know nothing of each other (full duplex). The switch passes a packet on while it still
 * comes in (cut-through), so that a lone packet pays for its length once: alpha + beta m. Where several senders meet,
 * the wire to d is shared in the order of arrival, and what would wait behind more than BUFFER bytes is dropped, as by
 * the buffer of a switch's port. A sender is held back instead: its device is read no further than AHEAD, the
 * rest waits in its own network card's queue. Packets from and to the launcher, whose network is no part of what is
 * emulated, go straight through.
 *
 * tun rather than tap: no ARP, no broadcasts. TCP hands over segments of up to 64 KiB in one piece (TSO; vnet_hdr says
 * where to cut) and they stay in one piece, which is what keeps the processor's share small; w counts each of the
 * packets that a card would cut it into, headers, preamble and gap included. Checksums are left out: nothing is lost
 * between two writes to memory.
 *
 * Time. The loop sleeps in ppoll until the next packet is due, with a slack of 1 ns instead of the kernel's 50 us, and
 * never spins: on two cores that are busy with ranks a spinning switch would take half of what it serves. In exchange
 * a packet is late by the time of one wake-up; a real-time priority (where the kernel grants it) keeps that short.
 * Lateness does not lower the rate as long as it stays under AHEAD: due times follow from the formulas above, not from
 * when the loop came round. SIGUSR1 appends a line of totals to LOG; SIGTERM does so and ends. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

enum { PORTS_MAX = 65, LAUNCHER_ADDRESS = 254, READS = 16 };
enum { BUFFER = 4 << 20 };               /* of each port to a node [bytes], as the packet buffers of small switches */
enum { PACKET_MAX = 65536 + 64 };        /* a segment of TCP and its vnet_hdr [bytes] */
enum { FRAME = 14 + 4 + 8 + 12 };        /* Ethernet around a packet: header, checksum, preamble, gap [bytes] */
enum { PROTOCOL = 9, DESTINATION = 16 }; /* where these lie in an IPv4 header */
#define AHEAD 2e-3                       /* how much of a sender's wire may be booked [s] */

struct packet {
    struct packet *next;
    double due;           /* [s]: when it arrives; then, when it is there */
    double wire;          /* what it takes on a wire [bytes] */
    size_t to, bytes;     /* port; length of data */
    unsigned char data[]; /* vnet_hdr, then IPv4 */
};

/* First in, first out; due times never fall from head to tail. */
struct queue {
    struct packet *head, *tail;
};

struct port {
    int tun;
    double sends_until, receives_until; /* when its two wires are free again [s] */
    struct queue flight;                /* from this node, on their way to the ports they are for */
    struct queue inbound;               /* to this node, on its wire or waiting for it */
    double waiting;                     /* of inbound [bytes on the wire] */
};

struct lab {
    size_t ports;       /* the launcher's is the last */
    double rate, delay; /* [bytes/s], [s] */
    struct port port[PORTS_MAX];
    /* Totals for the log. */
    size_t delivered, dropped;     /* packets between nodes */
    double late_sum, late_longest; /* of those delivered [s] */
};

/* -- queues ---------------------------------------------------------------------------------------- */
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

/* -- a packet's way --------------------------------------------------------------------------------- */
/* Bytes on the wire of a packet that TCP has perhaps left to the card to cut: every piece repeats the headers. */
static double wire_bytes(const struct virtio_net_hdr *cut, const unsigned char *ip, size_t bytes) {
    if (cut->gso_type == VIRTIO_NET_HDR_GSO_NONE || cut->gso_size == 0) return (double)(bytes + FRAME);
    size_t header = (size_t)(ip[0] & 15) * 4;
    if (header + 12 < bytes) header += (size_t)(ip[header + 12] >> 4) * 4; /* TCP's own length */
    size_t payload = bytes > header ? bytes - header : 0;
    size_t pieces = (payload + cut->gso_size - 1) / cut->gso_size;
    return (double)(payload + pieces * (header + FRAME));
}

/* The port that has this address; `ports`: none. */
static size_t port_of(const struct lab *l, const unsigned char *ip, size_t bytes) {
    static const unsigned char net[] = {10, 77, 0};
    if (bytes < 20 || ip[0] >> 4 != 4 || memcmp(ip + DESTINATION, net, sizeof net) != 0) return l->ports;
    size_t host = ip[DESTINATION + 3];
    if (host == LAUNCHER_ADDRESS) return l->ports - 1;
    return host >= 1 && host < l->ports ? host - 1 : l->ports;
}

static void hand_over(struct lab *l, size_t to, const void *data, size_t bytes) {
    if (write(l->port[to].tun, data, bytes) != (ssize_t)bytes) l->dropped++;
}

/* What a namespace sent, onto its wire. Returns false when there is nothing to read. */
static bool take(struct lab *l, size_t from) {
    static unsigned char data[PACKET_MAX];
    struct port *sender = &l->port[from];
    ssize_t got = read(sender->tun, data, sizeof data);
    if (got < (ssize_t)sizeof(struct virtio_net_hdr)) return false;
    struct virtio_net_hdr cut;
    memcpy(&cut, data, sizeof cut);
    const unsigned char *ip = data + sizeof cut;
    size_t bytes = (size_t)got, to = port_of(l, ip, bytes - sizeof cut), launcher = l->ports - 1;
    if (to == l->ports || to == from) return true;
    if (to == launcher || from == launcher) {
        hand_over(l, to, data, bytes);
        return true;
    }
    struct packet *p = mem_alloc(1, sizeof *p + bytes, "a packet");
    p->wire = wire_bytes(&cut, ip, bytes - sizeof cut);
    p->to = to;
    p->bytes = bytes;
    memcpy(p->data, data, bytes);
    sender->sends_until = fmax(clock_now(), sender->sends_until) + p->wire / l->rate;
    p->due = sender->sends_until + l->delay;
    push(&sender->flight, p);
    return true;
}

/* The port whose packet in flight arrives first; NULL: none flies. */
static struct port *first_to_arrive(struct lab *l) {
    struct port *first = NULL;
    for (struct port *p = l->port; p < l->port + l->ports; p++)
        if (p->flight.head && (!first || p->flight.head->due < first->flight.head->due)) first = p;
    return first;
}

/* Packets that have arrived by now, in that order, into the queues of the nodes they are for. */
static void arrive(struct lab *l, double now) {
    struct port *from;
    while ((from = first_to_arrive(l)) && from->flight.head->due <= now) {
        struct packet *p = pop(&from->flight);
        struct port *to = &l->port[p->to];
        if (to->waiting + p->wire > BUFFER) {
            l->dropped++;
            mem_free(p);
            continue;
        }
        p->due = to->receives_until = fmax(p->due, to->receives_until + p->wire / l->rate);
        to->waiting += p->wire;
        push(&to->inbound, p);
    }
}

static void deliver(struct lab *l, size_t to, double now) {
    struct port *port = &l->port[to];
    while (port->inbound.head && port->inbound.head->due <= now) {
        struct packet *p = pop(&port->inbound);
        hand_over(l, to, p->data, p->bytes);
        port->waiting -= p->wire;
        double late = clock_now() - p->due;
        l->delivered++;
        l->late_sum += late;
        l->late_longest = fmax(l->late_longest, late);
        mem_free(p);
    }
}

/* -- the loop --------------------------------------------------------------------------------------- */
static volatile sig_atomic_t ended, asked;

static void on_signal(int signal) {
    if (signal == SIGUSR1)
        asked = 1;
    else
        ended = 1;
}

/* Which devices are to be read, and when there is something to do even if none has anything (INFINITY: never). */
static double plan(const struct lab *l, double now, struct pollfd *watched) {
    double wake = INFINITY;
    for (size_t i = 0; i < l->ports; i++) {
        const struct port *p = &l->port[i];
        bool full = p->sends_until - now >= AHEAD;
        watched[i] = (struct pollfd){.fd = p->tun, .events = full ? 0 : POLLIN};
        if (full) wake = fmin(wake, p->sends_until - AHEAD / 2);
        if (p->flight.head) wake = fmin(wake, p->flight.head->due);
        if (p->inbound.head) wake = fmin(wake, p->inbound.head->due);
    }
    return wake;
}

static void log_totals(const struct lab *l) {
    double count = l->delivered > 0 ? (double)l->delivered : 1;
    printf(
        "totals: %zu packets, %zu dropped, late by %.0f us on average and %.0f us at most, %.2f s of processor time\n",
        l->delivered, l->dropped, 1e6 * l->late_sum / count, 1e6 * l->late_longest, (double)clock() / CLOCKS_PER_SEC);
    fflush(stdout);
}

/* Signals are let in only while it sleeps, so that none comes between a look at the flags and the sleep. */
static void serve(struct lab *l, const sigset_t *asleep) {
    while (!ended) {
        struct pollfd watched[PORTS_MAX];
        double now = clock_now();
        arrive(l, now);
        for (size_t i = 0; i < l->ports; i++) deliver(l, i, now);
        now = clock_now();
        double wait = fmax(plan(l, now, watched) - now, 0);
        struct timespec limit = {0};
        if (isfinite(wait)) limit = (struct timespec){(time_t)wait, (long)(1e9 * (wait - floor(wait)))};
        int ready = ppoll(watched, l->ports, isfinite(wait) ? &limit : NULL, asleep);
        if (asked) {
            asked = 0;
            log_totals(l);
        }
        for (size_t i = 0; i < l->ports && ready > 0; i++) {
            if (!(watched[i].revents & POLLIN)) continue;
            for (int n = 0; n < READS && l->port[i].sends_until - clock_now() < AHEAD && take(l, i); n++) continue;
        }
    }
}

static void empty(struct queue *q) {
    while (q->head) mem_free(pop(q));
}

/* -- start ------------------------------------------------------------------------------------------ */
/* The device eth0 of a namespace. Leaves this process in that namespace. */
static int attach(const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/run/netns/%s", name);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0) die_status(EXIT_SYSTEM, "netlab-switch: cannot open %s: %s", path, strerror(errno));
    if (setns(space, CLONE_NEWNET) != 0)
        die_status(EXIT_SYSTEM, "netlab-switch: cannot enter %s: %s", path, strerror(errno));
    close(space);
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tun < 0) die_status(EXIT_SYSTEM, "netlab-switch: cannot open /dev/net/tun: %s", strerror(errno));
    struct ifreq device = {.ifr_name = "eth0", .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    if (ioctl(tun, TUNSETIFF, &device) != 0 || ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0)
        die_status(EXIT_SYSTEM, "netlab-switch: eth0 in %s: %s", path, strerror(errno));
    return tun;
}

/* The best that the kernel grants; said in the log. */
static void be_punctual(void) {
    const char *how = "plain";
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 20}) == 0)
        how = "real-time";
    else if (setpriority(PRIO_PROCESS, 0, -20) == 0)
        how = "nice -20";
    printf("priority: %s\n", how);
    fflush(stdout);
}

/* The rest runs in a process of its own; the caller comes back when all devices are attached. */
static void detach(const char *log) {
    if (!freopen(log, "a", stdout)) die_status(EXIT_SYSTEM, "netlab-switch: cannot write %s: %s", log, strerror(errno));
    pid_t child = fork();
    if (child < 0) die_status(EXIT_SYSTEM, "netlab-switch: cannot fork: %s", strerror(errno));
    if (child > 0) _exit(EXIT_DONE);
    setsid();
    if (!freopen("/dev/null", "r", stdin) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        die("%s: %s", log, strerror(errno));
    be_punctual();
}

static void catch_signals(sigset_t *asleep) {
    sigset_t ours;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&ours);
    const int caught[] = {SIGUSR1, SIGTERM, SIGINT};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        sigaddset(&ours, caught[i]);
        sigaction(caught[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &ours, asleep);
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) sigdelset(asleep, caught[i]);
}

static double number(const char *text, double least) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least))
        die_status(EXIT_USER, "netlab-switch: %.60s: a number of at least %g is needed", text, least);
    return value;
}

int main(int argc, char **argv) {
    enum { RATE = 1, DELAY, LOG, FIRST };
    static struct lab l;
    if (argc < FIRST + 2 || argc > FIRST + PORTS_MAX)
        die_status(EXIT_USER, "usage: netlab-switch RATE DELAY LOG NODE... LAUNCHER (see scripts/netlab.sh)");
    l.rate = number(argv[RATE], 1) / 8;
    l.delay = number(argv[DELAY], 0) * 1e-9;
    l.ports = (size_t)(argc - FIRST);
    for (size_t i = 0; i < l.ports; i++) l.port[i].tun = attach(argv[FIRST + i]);
    sigset_t asleep;
    catch_signals(&asleep);
    detach(argv[LOG]);
    serve(&l, &asleep);
    log_totals(&l);
    for (size_t i = 0; i < l.ports; i++) {
        empty(&l.port[i].flight);
        empty(&l.port[i].inbound);
        close(l.port[i].tun);
    }
    return EXIT_DONE;
}
