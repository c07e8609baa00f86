/*
 * A load generator: N connections to 127.0.0.1, one call outstanding on each.
 *
 * load PORT CONNECTIONS WARM_UP SECONDS < SCRIPT     prints calls, seconds, p50 and p99 in ns
 *
 * Lines of the script:
 *   once HEX                         a PDU sent after connecting; its answer is awaited
 *   copy REPLY START LENGTH LOOP TO  bytes of that once-answer go into that loop PDU
 *   loop HEX                         the PDUs sent in turn, over and over
 *   tail HEX                         every answer in the loop must end with these bytes
 *   stream FD FILE                   a connection that is open and bound already, and the PDUs of
 *                                    all its calls, each sent once; instead of once, copy and loop,
 *                                    and of CONNECTIONS. The run ends when one has none left.
 * Any answer in the loop that is not a response, or ends otherwise, stops the run.
 */

#define _GNU_SOURCE
#include "wire.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 17, MOST_PDUS = 16, MOST_COPIES = 16, EVENTS = 1024, MOST_SAMPLES = 1 << 22, MOST_STREAMS = 64 };

struct copy {
    unsigned reply, start, length, loop, to;
};

struct connection {
    int socket;
    unsigned next;
    uint64_t sent_at;
    size_t held;
    struct bytes loop[MOST_PDUS];
    struct bytes stream;
    size_t streamed;
    uint8_t input[ROOM];
};

static struct bytes once[MOST_PDUS], loop[MOST_PDUS], tail;
static struct copy copies[MOST_COPIES];
static unsigned once_count, loop_count, copy_count;
static struct { int socket; struct bytes pdus; } streams[MOST_STREAMS];
static unsigned stream_count;
static int exhausted;
static uint64_t *samples;
static size_t calls;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void refuse(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(3);
}

static struct bytes read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        die(path);
    struct bytes all = { malloc(ftell(file) + 1), ftell(file) };
    rewind(file);
    if (!all.data || fread(all.data, 1, all.length, file) != all.length)
        die(path);
    fclose(file);
    return all;
}

static void read_stream(const char *value)
{
    char path[4096];
    if (stream_count == MOST_STREAMS ||
        sscanf(value, "%d %4095s", &streams[stream_count].socket, path) != 2)
        refuse("a stream that is not understood");
    streams[stream_count++].pdus = read_file(path);
}

static void read_line(char *line)
{
    struct copy copy;
    char *value = strchr(line, ' ');
    line[strcspn(line, "\n")] = 0;
    if (!value)
        refuse("a script line without a value");
    if (!strncmp(line, "once ", 5) && once_count < MOST_PDUS)
        once[once_count++] = from_hex(value + 1);
    else if (!strncmp(line, "loop ", 5) && loop_count < MOST_PDUS)
        loop[loop_count++] = from_hex(value + 1);
    else if (!strncmp(line, "stream ", 7))
        read_stream(value + 1);
    else if (!strncmp(line, "tail ", 5))
        tail = from_hex(value + 1);
    else if (copy_count < MOST_COPIES && sscanf(line, "copy %u %u %u %u %u", &copy.reply, &copy.start,
                                                &copy.length, &copy.loop, &copy.to) == 5)
        copies[copy_count++] = copy;
    else
        refuse("a script line that is not understood");
}

static void send_all(int socket, const struct bytes *pdu)
{
    for (size_t sent = 0; sent < pdu->length;) {
        ssize_t wrote = write(socket, pdu->data + sent, pdu->length - sent);
        if (wrote <= 0)
            die("write");
        sent += wrote;
    }
}

/* The length of the whole answer at the start of the input, or 0. */
static size_t whole_answer(const struct connection *from)
{
    size_t at = 0;
    while (from->held - at >= PDU_HEADER) {
        const uint8_t *fragment = from->input + at;
        if (from->held - at < fragment_length(fragment))
            return 0;
        at += fragment_length(fragment);
        if (fragment[FLAGS_AT] & PFC_LAST_FRAG)
            return at;
    }
    return 0;
}

static size_t await_answer(struct connection *from)
{
    size_t length;
    while (!(length = whole_answer(from))) {
        ssize_t got = read(from->socket, from->input + from->held, ROOM - from->held);
        if (got <= 0)
            refuse("the server closed the connection, or its answer is too long");
        from->held += got;
    }
    return length;
}

static void fill_in(struct connection *into, unsigned reply, size_t length)
{
    for (unsigned i = 0; i < copy_count; i++) {
        const struct copy *copy = copies + i;
        if (copy->reply != reply)
            continue;
        if (copy->start + copy->length > length || copy->loop >= loop_count ||
            copy->to + copy->length > into->loop[copy->loop].length)
            refuse("a copy reaches beyond its PDU");
        memcpy(into->loop[copy->loop].data + copy->to, into->input + copy->start, copy->length);
    }
}

static void start(struct connection *made, int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons(port) };
    int yes = 1;
    made->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(made->socket, (void *)&address, sizeof address))
        die("connect");
    setsockopt(made->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    for (unsigned i = 0; i < loop_count; i++) {
        made->loop[i] = (struct bytes){ malloc(loop[i].length), loop[i].length };
        memcpy(made->loop[i].data, loop[i].data, loop[i].length);
    }
    for (unsigned i = 0; i < once_count; i++) {
        send_all(made->socket, once + i);
        size_t length = await_answer(made);
        if (made->input[TYPE_AT] == 3 || made->input[TYPE_AT] == 13)
            refuse("a fault or a bind_nak before the loop");
        fill_in(made, i, length);
        made->held = 0;
    }
}

/* The next call of a stream: all fragments of one request. */
static struct bytes next_of_stream(struct connection *on)
{
    struct bytes request = { on->stream.data + on->streamed, 0 };
    while (on->streamed < on->stream.length) {
        const uint8_t *fragment = on->stream.data + on->streamed;
        on->streamed += fragment_length(fragment);
        request.length += fragment_length(fragment);
        if (fragment[FLAGS_AT] & PFC_LAST_FRAG)
            break;
    }
    return request;
}

static void call(struct connection *on)
{
    on->sent_at = now();
    if (on->stream.length) {
        struct bytes request = next_of_stream(on);
        exhausted |= !request.length;
        send_all(on->socket, &request);
        return;
    }
    send_all(on->socket, on->loop + on->next);
    on->next = (on->next + 1) % loop_count;
}

static void check(const struct connection *from, size_t length)
{
    if (from->input[TYPE_AT] != PDU_RESPONSE)
        refuse("an answer that is not a response");
    if (length < tail.length || memcmp(from->input + length - tail.length, tail.data, tail.length))
        refuse("an answer that does not end as it must");
}

static void take_answer(struct connection *from, int measured)
{
    ssize_t got = read(from->socket, from->input + from->held, ROOM - from->held);
    if (got <= 0)
        refuse("the server closed the connection, or its answer is too long");
    from->held += got;
    size_t length = whole_answer(from);
    if (!length)
        return;
    check(from, length);
    if (measured && calls < MOST_SAMPLES)
        samples[calls] = now() - from->sent_at;
    calls += measured;
    from->held = 0;
    call(from);
}

static double run_until(int epoll, struct connection *all, uint64_t end, int measured)
{
    struct epoll_event events[EVENTS];
    uint64_t began = now(), time = began;
    while (time < end && !exhausted) {
        int count = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < count; i++)
            take_answer(all + events[i].data.u32, measured);
        time = now();
    }
    return (time - began) / 1e9;
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void report(double seconds)
{
    size_t kept = calls < MOST_SAMPLES ? calls : MOST_SAMPLES;
    if (!kept)
        refuse("not one call was answered");
    qsort(samples, kept, sizeof *samples, by_size);
    printf("%zu %f %lu %lu\n", calls, seconds, (unsigned long)samples[kept / 2],
           (unsigned long)samples[kept * 99 / 100]);
}

int main(int count, char **arguments)
{
    static char line[1 << 19];
    if (count != 5) {
        fprintf(stderr, "usage: load PORT CONNECTIONS WARM_UP SECONDS < SCRIPT\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin))
        read_line(line);
    if (!loop_count && !stream_count)
        refuse("a script without a loop");
    unsigned connection_count = stream_count ? stream_count : (unsigned)atoi(arguments[2]);
    struct connection *all = calloc(connection_count, sizeof *all);
    samples = malloc(MOST_SAMPLES * sizeof *samples);
    if (!all || !samples)
        die("malloc");
    int epoll = epoll_create1(0);
    for (unsigned i = 0; i < connection_count; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };
        if (stream_count) {
            all[i].socket = streams[i].socket;
            all[i].stream = streams[i].pdus;
        } else {
            start(all + i, atoi(arguments[1]));
        }
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].socket, &event);
    }
    for (unsigned i = 0; i < connection_count; i++)
        call(all + i);
    run_until(epoll, all, now() + atof(arguments[3]) * 1e9, 0);
    report(run_until(epoll, all, now() + atof(arguments[4]) * 1e9, 1));
    return 0;
}
