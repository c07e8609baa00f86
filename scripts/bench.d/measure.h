/* What the load generators share: the clock, connections to loopback, and samples of latency. */

#define _GNU_SOURCE
#include "wire.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_SAMPLES = 1 << 22 };

static uint64_t *samples;
static size_t taken;
static int measured;
static size_t wanted;

static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static inline void refuse(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(3);
}

static inline int connected_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons(port) };
    int yes = 1, made = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(made, (void *)&address, sizeof address))
        die("connect");
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return made;
}

static inline void write_all(int socket, const uint8_t *data, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t wrote = write(socket, data + sent, length - sent);
        if (wrote <= 0)
            die("write");
        sent += wrote;
    }
}

/* Something was done that began at this time; it counts once `measured` is set. */
static inline void sample(uint64_t since)
{
    if (!measured)
        return;
    if (taken < MOST_SAMPLES)
        samples[taken] = now() - since;
    taken++;
}

/* Whether so much was done that a run ends before its time; 0 is without such an end. */
static inline int enough(void)
{
    return measured && wanted && taken >= wanted;
}

/* Whether this line of a script says how much is to be done, once `measured` is set. */
static inline int read_wanted(const char *line)
{
    return sscanf(line, "calls %zu", &wanted) == 1;
}

static inline int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static inline void make_samples(void)
{
    samples = malloc(MOST_SAMPLES * sizeof *samples);
    if (!samples)
        die("malloc");
}

/* Print how many samples there are, the seconds, and their p50 and p99 in ns. */
static inline void report(double seconds)
{
    size_t kept = taken < MOST_SAMPLES ? taken : MOST_SAMPLES;
    if (!kept)
        refuse("nothing was done in all this time");
    qsort(samples, kept, sizeof *samples, by_size);
    printf("%zu %f %lu %lu\n", taken, seconds, (unsigned long)samples[kept / 2],
           (unsigned long)samples[kept * 99 / 100]);
}
