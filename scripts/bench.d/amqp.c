/*
 * A load generator for an AMQP 0-9-1 broker on 127.0.0.1: quorum queues, persistent messages.
 *
 * amqp PORT QUEUE send CONNECTIONS WINDOW SIZE WARM_UP SECONDS   a purge, then publishing, WINDOW
 *                                     messages of each connection not confirmed yet
 * amqp PORT QUEUE receive CONNECTIONS 1 0 WARM_UP SECONDS        consuming with a prefetch of one
 *                                     and an acknowledgement for each message
 *     both may have COUNT behind them, and end after so many messages that count, or SECONDS;
 *     they print the messages, the seconds, and p50 and p99 in ns
 * amqp PORT QUEUE put COUNT SIZE      a purge, then so many messages, all of them confirmed
 * amqp PORT QUEUE await COUNT         waits until so many are there; prints how many were there
 *                                     when the first came, and the seconds since then
 *
 * SIZE may be LOW-HIGH: messages whose bodies, correlations and priorities differ are sent in turn.
 * Compiled with WITH_TLS it speaks TLS, and believes every certificate. A refusal of the broker
 * stops the run.
 */

#define _GNU_SOURCE
#include "measure.h"

#ifdef WITH_TLS
#include <openssl/ssl.h>
#endif
#include <endian.h>
#include <stdarg.h>
#include <sys/epoll.h>

enum { ROOM = 1 << 18, EVENTS = 1024, MOST_CONNECTIONS = 1024, MOST_WINDOW = 1024, DIFFERENT = 64 };
enum { METHOD = 1, HEADER = 2, BODY = 3, HEARTBEAT = 8 };
enum { FRAME_HEADER = 7, FRAME_END = 0xCE, MOST_PAYLOAD = 131064 };

#define METHOD_ID(class, method) ((class) << 16 | (method))
enum {
    CONNECTION_START = METHOD_ID(10, 10), CONNECTION_START_OK = METHOD_ID(10, 11),
    CONNECTION_TUNE = METHOD_ID(10, 30), CONNECTION_TUNE_OK = METHOD_ID(10, 31),
    CONNECTION_OPEN = METHOD_ID(10, 40), CONNECTION_OPEN_OK = METHOD_ID(10, 41),
    CHANNEL_OPEN = METHOD_ID(20, 10), CHANNEL_OPEN_OK = METHOD_ID(20, 11),
    QUEUE_DECLARE = METHOD_ID(50, 10), QUEUE_DECLARE_OK = METHOD_ID(50, 11),
    QUEUE_PURGE = METHOD_ID(50, 30), QUEUE_PURGE_OK = METHOD_ID(50, 31),
    BASIC_QOS = METHOD_ID(60, 10), BASIC_QOS_OK = METHOD_ID(60, 11),
    BASIC_CONSUME = METHOD_ID(60, 20), BASIC_CONSUME_OK = METHOD_ID(60, 21),
    BASIC_PUBLISH = METHOD_ID(60, 40), BASIC_DELIVER = METHOD_ID(60, 60), BASIC_ACK = METHOD_ID(60, 80),
    CONFIRM_SELECT = METHOD_ID(85, 10), CONFIRM_SELECT_OK = METHOD_ID(85, 11),
};

struct connection {
    int socket;
#ifdef WITH_TLS
    SSL *tls;
#endif
    uint64_t published, confirmed;
    uint64_t sent_at[MOST_WINDOW];
    size_t held, output_length;
    uint8_t input[ROOM], output[ROOM];
};

static const char *queue;
static unsigned window;
static struct { uint8_t *data; size_t length; } messages[DIFFERENT];
static unsigned message_count;
static uint64_t next_message;
static uint64_t left_to_publish = UINT64_MAX;
/* Frames. The letters of a format: o, s, l and q are 1, 2, 4 and 8 octets, t is a short string,
   T a table with one string in it (its name and value follow), or without any when that is NULL. */

static size_t put(uint8_t *to, uint64_t value, size_t octets)
{
    uint64_t big = htobe64(value);
    memcpy(to, (uint8_t *)&big + 8 - octets, octets);
    return octets;
}

static uint64_t get(const uint8_t *from, size_t octets)
{
    uint64_t big = 0;
    memcpy((uint8_t *)&big + 8 - octets, from, octets);
    return be64toh(big);
}

static size_t put_text(uint8_t *to, const char *text)
{
    size_t length = strlen(text);
    to[0] = length;
    memcpy(to + 1, text, length);
    return 1 + length;
}

static size_t put_table(uint8_t *to, const char *name, const char *value)
{
    size_t at = 4;
    if (name) {
        at += put_text(to + at, name);
        to[at++] = 'S';
        at += put(to + at, strlen(value), 4);
        memcpy(to + at, value, strlen(value));
        at += strlen(value);
    }
    put(to, at - 4, 4);
    return at;
}

static size_t close_frame(uint8_t *frame, unsigned type, unsigned channel, size_t payload)
{
    frame[0] = type;
    put(frame + 1, channel, 2);
    put(frame + 3, payload, 4);
    frame[FRAME_HEADER + payload] = FRAME_END;
    return FRAME_HEADER + payload + 1;
}

static size_t method(uint8_t *to, unsigned channel, unsigned id, const char *format, ...)
{
    va_list values;
    size_t at = FRAME_HEADER + put(to + FRAME_HEADER, id, 4);
    va_start(values, format);
    for (const char *letter = format; *letter; letter++)
        if (*letter == 't') {
            at += put_text(to + at, va_arg(values, const char *));
        } else if (*letter == 'T') {
            const char *name = va_arg(values, const char *);
            at += put_table(to + at, name, name ? va_arg(values, const char *) : NULL);
        } else if (*letter == 'q') {
            at += put(to + at, va_arg(values, uint64_t), 8);
        } else {
            at += put(to + at, va_arg(values, unsigned), *letter == 'o' ? 1 : *letter == 's' ? 2 : 4);
        }
    va_end(values);
    return close_frame(to, METHOD, channel, at - FRAME_HEADER);
}

static void append_message(size_t size, int different)
{
    uint8_t *message = calloc(1, size + 512);
    if (!message)
        die("calloc");
    size_t at = method(message, 1, BASIC_PUBLISH, "stto", 0, "", queue, 0), length = 15;
    uint8_t *header = message + at;
    put(header + FRAME_HEADER, 60, 2);
    put(header + FRAME_HEADER + 4, size, 8);
    put(header + FRAME_HEADER + 12, different ? 0x1C00 : 0x1000, 2);
    header[FRAME_HEADER + 14] = 2;
    if (different) {
        char correlation[40];
        snprintf(correlation, sizeof correlation, "%08x-%08x-%08x", rand(), rand(), rand());
        header[FRAME_HEADER + length++] = rand() % 2 ? 3 : 5;
        length += put_text(header + FRAME_HEADER + length, correlation);
    }
    at += close_frame(header, HEADER, 1, length);
    for (size_t i = 0; i < size; i++)
        message[at + FRAME_HEADER + i] = different ? rand() : 'x';
    at += close_frame(message + at, BODY, 1, size);
    messages[message_count].data = message;
    messages[message_count++].length = at;
}

/* What published messages are on the wire: one of a size, or several of sizes in a range. */
static void make_messages(const char *sizes)
{
    unsigned low, high;
    int different = sscanf(sizes, "%u-%u", &low, &high) == 2;
    if (!different)
        low = high = atoi(sizes);
    if (high < low || high > MOST_PAYLOAD)
        refuse("a message that needs more than one frame");
    srand(1);
    for (int i = 0; i < (different ? DIFFERENT : 1); i++)
        append_message(low + rand() % (high - low + 1), different);
}

static size_t whole_frame(const uint8_t *frame, size_t held)
{
    if (held < FRAME_HEADER)
        return 0;
    size_t length = FRAME_HEADER + get(frame + 3, 4) + 1;
    if (length > ROOM)
        refuse("a frame that is too long");
    return held < length ? 0 : length;
}

static unsigned method_of(const uint8_t *frame)
{
    return frame[0] == METHOD ? get(frame + FRAME_HEADER, 4) : 0;
}

#ifdef WITH_TLS
static void secure(struct connection *made)
{
    static SSL_CTX *context;
    if (!context && !(context = SSL_CTX_new(TLS_client_method())))
        refuse("no TLS");
    made->tls = SSL_new(context);
    if (!made->tls || !SSL_set_fd(made->tls, made->socket) || SSL_connect(made->tls) != 1)
        refuse("the broker does not agree on TLS");
}

static void write_out(struct connection *to, const uint8_t *data, size_t length)
{
    if (length && SSL_write(to->tls, data, length) != (int)length)
        refuse("the broker takes no more");
}

static ssize_t read_in(struct connection *from, uint8_t *data, size_t room)
{
    return SSL_read(from->tls, data, room);
}

static int has_more(struct connection *from)
{
    return SSL_pending(from->tls) > 0;
}
#else
static void secure(struct connection *made)
{
    (void)made;
}

static void write_out(struct connection *to, const uint8_t *data, size_t length)
{
    write_all(to->socket, data, length);
}

static ssize_t read_in(struct connection *from, uint8_t *data, size_t room)
{
    return read(from->socket, data, room);
}

static int has_more(struct connection *from)
{
    (void)from;
    return 0;
}
#endif

static void flush(struct connection *to)
{
    write_out(to, to->output, to->output_length);
    to->output_length = 0;
}

static void read_some(struct connection *from)
{
    ssize_t got = read_in(from, from->input + from->held, ROOM - from->held);
    if (got <= 0)
        refuse("the broker closed the connection");
    from->held += got;
}

/* Send what is queued and wait for one method; its two first numbers may be of interest. */
static uint64_t expect(struct connection *on, unsigned id, size_t skip_text, size_t octets)
{
    size_t length;
    flush(on);
    while (!(length = whole_frame(on->input, on->held)))
        read_some(on);
    if (method_of(on->input) != id) {
        fprintf(stderr, "method %x instead of %x: %.*s\n", method_of(on->input), id, 200, on->input + 14);
        exit(3);
    }
    size_t at = FRAME_HEADER + 4;
    if (skip_text)
        at += 1 + on->input[at];
    uint64_t value = octets ? get(on->input + at, octets) : 0;
    on->held -= length;
    memmove(on->input, on->input + length, on->held);
    return value;
}

#define QUEUE_METHOD(on, ...) ((on)->output_length += method((on)->output + (on)->output_length, __VA_ARGS__))

static uint64_t declare(struct connection *on)
{
    QUEUE_METHOD(on, 1, QUEUE_DECLARE, "stoT", 0, queue, 2, "x-queue-type", "quorum");
    return expect(on, QUEUE_DECLARE_OK, 1, 4);
}

static void purge(struct connection *on)
{
    QUEUE_METHOD(on, 1, QUEUE_PURGE, "sto", 0, queue, 0);
    expect(on, QUEUE_PURGE_OK, 0, 0);
}

static void log_on(struct connection *on)
{
    static const char plain[] = "\0guest\0guest";
    uint8_t *to = on->output;
    memcpy(to, "AMQP\0\0\x09\x01", 8);
    on->output_length = 8;
    expect(on, CONNECTION_START, 0, 0);
    size_t at = FRAME_HEADER + put(to + FRAME_HEADER, CONNECTION_START_OK, 4);
    at += put_table(to + at, NULL, NULL);
    at += put_text(to + at, "PLAIN");
    at += put(to + at, sizeof plain - 1, 4);
    memcpy(to + at, plain, sizeof plain - 1);
    at += sizeof plain - 1;
    at += put_text(to + at, "en_US");
    on->output_length = close_frame(to, METHOD, 0, at - FRAME_HEADER);
    expect(on, CONNECTION_TUNE, 0, 0);
    QUEUE_METHOD(on, 0, CONNECTION_TUNE_OK, "sls", 2047, 131072, 0);
    QUEUE_METHOD(on, 0, CONNECTION_OPEN, "tto", "/", "", 0);
    expect(on, CONNECTION_OPEN_OK, 0, 0);
    QUEUE_METHOD(on, 1, CHANNEL_OPEN, "t", "");
    expect(on, CHANNEL_OPEN_OK, 0, 0);
}

static struct connection *start(int port)
{
    struct connection *made = calloc(1, sizeof *made);
    if (!made)
        die("calloc");
    made->socket = connected_to(port);
    secure(made);
    log_on(made);
    return made;
}

static void start_publishing(struct connection *on)
{
    QUEUE_METHOD(on, 1, CONFIRM_SELECT, "o", 0);
    expect(on, CONFIRM_SELECT_OK, 0, 0);
}

static void start_consuming(struct connection *on)
{
    QUEUE_METHOD(on, 1, BASIC_QOS, "lso", 0, 1, 0);
    expect(on, BASIC_QOS_OK, 0, 0);
    QUEUE_METHOD(on, 1, BASIC_CONSUME, "sttoT", 0, queue, "", 0, NULL);
    on->sent_at[0] = now();
    expect(on, BASIC_CONSUME_OK, 0, 0);
}

/* As many messages as the window has room for, in as few writes as the output has room for. */
static void publish(struct connection *on)
{
    while (on->published - on->confirmed < window && left_to_publish) {
        unsigned which = next_message++ % message_count;
        if (on->output_length + messages[which].length > ROOM)
            flush(on);
        memcpy(on->output + on->output_length, messages[which].data, messages[which].length);
        on->output_length += messages[which].length;
        on->sent_at[on->published++ % window] = now();
        left_to_publish--;
    }
}

static void confirmed(struct connection *on, const uint8_t *frame)
{
    uint64_t tag = get(frame + FRAME_HEADER + 4, 8);
    uint64_t first = frame[FRAME_HEADER + 12] & 1 ? on->confirmed + 1 : tag;
    for (uint64_t each = first; each <= tag; each++)
        sample(on->sent_at[(each - 1) % window]);
    on->confirmed += tag + 1 - first;
}

static void delivered(struct connection *on, const uint8_t *frame)
{
    const uint8_t *tag = frame + FRAME_HEADER + 4;
    tag += 1 + tag[0];
    sample(on->sent_at[0]);
    QUEUE_METHOD(on, 1, BASIC_ACK, "qo", get(tag, 8), 0);
}

static void take_frame(struct connection *on, const uint8_t *frame)
{
    switch (frame[0] == METHOD ? method_of(frame) : frame[0]) {
    case BASIC_ACK:
        confirmed(on, frame);
        break;
    case BASIC_DELIVER:
        delivered(on, frame);
        break;
    case BODY:
        on->sent_at[0] = now();
        break;
    case HEADER:
    case HEARTBEAT:
        break;
    default:
        fprintf(stderr, "method %x: %.*s\n", method_of(frame), 200, frame + 14);
        exit(3);
    }
}

static void take_frames(struct connection *on)
{
    size_t at = 0, length;
    while ((length = whole_frame(on->input + at, on->held - at))) {
        take_frame(on, on->input + at);
        at += length;
    }
    on->held -= at;
    memmove(on->input, on->input + at, on->held);
    if (message_count)
        publish(on);
    flush(on);
}

static void take(struct connection *on)
{
    do {
        read_some(on);
        take_frames(on);
    } while (has_more(on));
}

static double run_until(int epoll, struct connection **all, uint64_t end)
{
    struct epoll_event events[EVENTS];
    uint64_t began = now(), time = began;
    while (time < end && !enough()) {
        int count = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < count; i++)
            take(all[events[i].data.u32]);
        time = now();
    }
    return (time - began) / 1e9;
}

static void run(int port, int sending, char **arguments)
{
    static struct connection *all[MOST_CONNECTIONS];
    unsigned count = atoi(arguments[0]);
    int epoll = epoll_create1(0);
    window = atoi(arguments[1]);
    make_samples();
    if (!count || count > MOST_CONNECTIONS || !window || window > MOST_WINDOW)
        refuse("too many connections, or too large a window");
    if (sending)
        make_messages(arguments[2]);
    for (unsigned i = 0; i < count; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };
        all[i] = start(port);
        declare(all[i]);
        if (!i && sending)
            purge(all[i]);
        (sending ? start_publishing : start_consuming)(all[i]);
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i]->socket, &event);
    }
    for (unsigned i = 0; i < count; i++)
        take_frames(all[i]);
    run_until(epoll, all, now() + atof(arguments[3]) * 1e9);
    measured = 1;
    report(run_until(epoll, all, now() + atof(arguments[4]) * 1e9));
}

static void put_messages(int port, uint64_t count, const char *size)
{
    struct connection *on = start(port);
    window = 256;
    left_to_publish = count;
    make_messages(size);
    declare(on);
    purge(on);
    start_publishing(on);
    take_frames(on);
    while (on->confirmed < count)
        take(on);
}

static void await(int port, uint64_t count)
{
    struct connection *on = start(port);
    uint64_t there, first = 0, began = 0, patience = now() + 120000000000ull;
    while ((there = declare(on)) < count) {
        if (there && !first) {
            first = there;
            began = now();
        }
        if (now() > patience)
            refuse("the messages do not come");
        usleep(5000);
    }
    printf("%lu %f\n", (unsigned long)first, first ? (now() - began) / 1e9 : 0.0);
}

int main(int count, char **arguments)
{
    if (count < 5) {
        fprintf(stderr, "usage: amqp PORT QUEUE send|receive|put|await …\n");
        return 2;
    }
    int port = atoi(arguments[1]);
    const char *what = arguments[3];
    queue = arguments[2];
    if (!strcmp(what, "put") && count == 6)
        put_messages(port, atoll(arguments[4]), arguments[5]);
    else if (!strcmp(what, "await"))
        await(port, atoll(arguments[4]));
    else if (count == 9 || count == 10) {
        wanted = count == 10 ? atoll(arguments[9]) : 0;
        run(port, !strcmp(what, "send"), arguments + 4);
    } else {
        refuse("what is not understood");
    }
    return 0;
}
