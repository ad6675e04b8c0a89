/* switch.c: the switch of scripts/netlab.sh: joins network namespaces by links of one rate and one-way delay.
 *
 *     netlab-switch RATE DELAY LOG NODE... LAUNCHER      rate [bit/s], delay [ns], file, names of namespaces
 *
 * Every namespace has a tun device eth0, made and given its address by the caller: 10.77.0.1 for the first node, and so
 * on; 10.77.0.254 for the launcher. What a namespace sends is read here and written, at its time, into the device of
 * the namespace it is for. scripts/netlab/links.h says when that is. A sender is held back by not reading its device:
 * the rest waits there, as in the queue of a network card. Packets from and to the launcher, whose network is no part
 * of what is emulated, go straight through.
 *
 * tun rather than tap: no ARP, no broadcasts. TCP hands over segments of up to 64 KiB in one piece (TSO; vnet_hdr says
 * where to cut) and they stay in one piece, which is what keeps the processor's share small; on the wire it counts as
 * the packets that a card would make of it. Checksums are left out: nothing is lost in
 * memory.
 *
 * Time. The loop sleeps in ppoll until the next packet is due, with a slack of 1 ns instead of the kernel's 50 us, and
 * never spins: on two cores that are busy with ranks a spinning switch would take half of what it serves. In exchange
 * a packet is late by the time of one wake-up; a real-time priority (where the kernel grants it) keeps that short.
 * Lateness does not lower the rate as long as it stays under LINKS_AHEAD: due times follow from the links' formulas,
 * not from when the loop came round. SIGUSR1 appends a line of totals to LOG; SIGTERM does so and ends. */
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
#include "scripts/netlab/links.h"

enum { PORTS_MAX = LINKS_NODES_MAX + 1, LAUNCHER_ADDRESS = 254, READS = 16 };
enum { PACKET_MAX = 65536 + 64 }; /* a segment of TCP and its vnet_hdr [bytes] */
enum { DESTINATION = 16 };        /* where the address lies in an IPv4 header */

struct lab {
    size_t ports; /* the launcher's is the last */
    int tun[PORTS_MAX];
    struct links links;
    /* Totals for the log: packets between nodes. */
    size_t delivered, lost;
    double late_sum, late_longest; /* of those delivered [s] */
};

/* -- a packet's way --------------------------------------------------------------------------------- */
/* The port that has this address; `ports`: none. */
static size_t port_of(const struct lab *l, const unsigned char *ip, size_t bytes) {
    static const unsigned char net[] = {10, 77, 0};
    if (bytes < 20 || ip[0] >> 4 != 4 || memcmp(ip + DESTINATION, net, sizeof net) != 0) return l->ports;
    size_t host = ip[DESTINATION + 3];
    if (host == LAUNCHER_ADDRESS) return l->ports - 1;
    return host >= 1 && host < l->ports ? host - 1 : l->ports;
}

static void hand_over(struct lab *l, size_t to, const void *data, size_t bytes) {
    if (write(l->tun[to], data, bytes) != (ssize_t)bytes) l->lost++;
}

/* What a namespace sent, onto its wire. Returns false when there is nothing to read. */
static bool take(struct lab *l, size_t from) {
    static unsigned char data[PACKET_MAX];
    ssize_t got = read(l->tun[from], data, sizeof data);
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
    struct packet *p = links_packet(bytes);
    p->from = from;
    p->to = to;
    p->wire = links_wire_bytes(ip, bytes - sizeof cut, cut.gso_type == VIRTIO_NET_HDR_GSO_NONE ? 0 : cut.gso_size);
    memcpy(p->data, data, bytes);
    links_send(&l->links, p, clock_now());
    return true;
}

static void deliver(struct lab *l) {
    struct packet *p;
    while ((p = links_due(&l->links, clock_now()))) {
        double late = clock_now() - p->due;
        hand_over(l, p->to, p->data, p->bytes);
        l->delivered++;
        l->late_sum += late;
        l->late_longest = fmax(l->late_longest, late);
        mem_free(p);
    }
}

/* From its device; the launcher has no wire that could be full. */
static bool may_send(const struct lab *l, size_t port, double now) {
    return port == l->ports - 1 || links_ready(&l->links, port, now);
}

/* -- the loop --------------------------------------------------------------------------------------- */
static volatile sig_atomic_t ended, asked;

static void on_signal(int signal) {
    if (signal == SIGUSR1)
        asked = 1;
    else
        ended = 1;
}

static void log_totals(const struct lab *l) {
    double count = l->delivered > 0 ? (double)l->delivered : 1;
    printf(
        "totals: %zu packets, %zu dropped, late by %.0f us on average and %.0f us at most, %.2f s of processor time\n",
        l->delivered, l->links.dropped + l->lost, 1e6 * l->late_sum / count, 1e6 * l->late_longest,
        (double)clock() / CLOCKS_PER_SEC);
    fflush(stdout);
}

/* Signals are let in only while it sleeps, so that none comes between a look at the flags and the sleep. */
static void serve(struct lab *l, const sigset_t *asleep) {
    while (!ended) {
        deliver(l);
        struct pollfd watched[PORTS_MAX];
        double now = clock_now();
        for (size_t i = 0; i < l->ports; i++)
            watched[i] = (struct pollfd){.fd = l->tun[i], .events = may_send(l, i, now) ? POLLIN : 0};
        double wait = fmax(links_wake(&l->links, now) - now, 0);
        struct timespec limit = {0};
        if (isfinite(wait)) limit = (struct timespec){(time_t)wait, (long)(1e9 * (wait - floor(wait)))};
        int ready = ppoll(watched, l->ports, isfinite(wait) ? &limit : NULL, asleep);
        if (asked) {
            asked = 0;
            log_totals(l);
        }
        for (size_t i = 0; i < l->ports && ready > 0; i++) {
            if (!(watched[i].revents & POLLIN)) continue;
            for (int n = 0; n < READS && may_send(l, i, clock_now()) && take(l, i); n++) continue;
        }
    }
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
static void detach(const char *log_file) {
    if (!freopen(log_file, "a", stdout))
        die_status(EXIT_SYSTEM, "netlab-switch: cannot write %s: %s", log_file, strerror(errno));
    pid_t child = fork();
    if (child < 0) die_status(EXIT_SYSTEM, "netlab-switch: cannot fork: %s", strerror(errno));
    if (child > 0) _exit(EXIT_DONE);
    setsid();
    if (!freopen("/dev/null", "r", stdin) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        die("%s: %s", log_file, strerror(errno));
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
    l.ports = (size_t)(argc - FIRST);
    links_open(&l.links, l.ports - 1, number(argv[RATE], 1) / 8, number(argv[DELAY], 0) * 1e-9);
    for (size_t i = 0; i < l.ports; i++) l.tun[i] = attach(argv[FIRST + i]);
    sigset_t asleep;
    catch_signals(&asleep);
    detach(argv[LOG]);
    printf("links: %.9g bytes/s, %.9g s\n", l.links.rate, l.links.delay);
    fflush(stdout);
    serve(&l, &asleep);
    log_totals(&l);
    links_close(&l.links);
    return EXIT_DONE;
}
