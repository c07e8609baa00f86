/*
 * A load generator: N connections to 127.0.0.1, one call outstanding on each, or as many as the
 * script's window says.
 *
 * load PORT CONNECTIONS WARM_UP SECONDS < SCRIPT     prints calls, seconds, p50 and p99 in ns
 *
 * Lines of the script:
 *   once HEX                         a PDU sent after connecting; its answer is awaited. The first
 *                                    is the bind; the others are sent for each outstanding call, so
 *                                    that each has a context handle of its own
 *   copy REPLY START LENGTH LOOP TO  bytes of that once-answer go into that loop PDU
 *   loop HEX                         the PDUs sent in turn, over and over
 *   tail HEX                         every answer in the loop must end with these bytes
 *   window COUNT                     calls outstanding on each connection, each with a call_id and a
 *                                    place in the loop of its own; they may be answered in any order
 *   stream FD FILE                   a connection that is open and bound already, and the PDUs of
 *                                    all its calls, each sent once; instead of once, copy and loop,
 *                                    and of CONNECTIONS. The run ends when one has none left.
 *                                    As many are outstanding as the window says.
 *   calls COUNT                      the run ends after so many answers that count, or SECONDS
 * Any answer in the loop that is not a response, or ends otherwise, stops the run.
 */

#include "measure.h"

#include <sys/epoll.h>

enum { ROOM = 1 << 17, MOST_PDUS = 16, MOST_COPIES = 16, EVENTS = 1024, MOST_STREAMS = 64, MOST_WINDOW = 1024 };
enum { FIRST_CALL_ID = 2, STREAM_CALLS = 1 << 16 };

struct copy {
    unsigned reply, start, length, loop, to;
};

struct call {
    uint64_t sent_at;
    unsigned next;
    struct bytes loop[MOST_PDUS];
};

struct connection {
    int socket;
    size_t held, output_length, output_room;
    struct call *calls;
    struct bytes stream;
    size_t streamed;
    uint64_t *stream_sent_at; /* by the low octets of the call_id */
    uint8_t *output;
    uint8_t input[ROOM];
};

static struct bytes once[MOST_PDUS], loop[MOST_PDUS], tail;
static struct copy copies[MOST_COPIES];
static unsigned once_count, loop_count, copy_count, window = 1;
static struct { int socket; struct bytes pdus; } streams[MOST_STREAMS];
static unsigned stream_count;
static int exhausted;
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
    if (read_wanted(line))
        return;
    if (!value)
        refuse("a script line without a value");
    if (!strncmp(line, "once ", 5) && once_count < MOST_PDUS)
        once[once_count++] = from_hex(value + 1);
    else if (!strncmp(line, "loop ", 5) && loop_count < MOST_PDUS)
        loop[loop_count++] = from_hex(value + 1);
    else if (!strncmp(line, "stream ", 7))
        read_stream(value + 1);
    else if (!strncmp(line, "window ", 7) && atoi(value) > 0 && atoi(value) <= MOST_WINDOW)
        window = atoi(value);
    else if (!strncmp(line, "tail ", 5))
        tail = from_hex(value + 1);
    else if (copy_count < MOST_COPIES && sscanf(line, "copy %u %u %u %u %u", &copy.reply, &copy.start,
                                                &copy.length, &copy.loop, &copy.to) == 5)
        copies[copy_count++] = copy;
    else
        refuse("a script line that is not understood");
}

/* The length of the whole answer that starts there, or 0. */
static size_t whole_answer(const struct connection *from, size_t start)
{
    size_t at = start;
    while (from->held - at >= PDU_HEADER) {
        const uint8_t *fragment = from->input + at;
        if (from->held - at < fragment_length(fragment))
            return 0;
        at += fragment_length(fragment);
        if (fragment[FLAGS_AT] & PFC_LAST_FRAG)
            return at - start;
    }
    return 0;
}

static void read_some(struct connection *from)
{
    ssize_t got = read(from->socket, from->input + from->held, ROOM - from->held);
    if (got <= 0)
        refuse("the server closed the connection, or its answer is too long");
    from->held += got;
}

static size_t await_answer(struct connection *from)
{
    size_t length;
    while (!(length = whole_answer(from, 0)))
        read_some(from);
    return length;
}

static void fill_in(struct connection *from, struct call *into, unsigned reply, size_t length)
{
    for (unsigned i = 0; i < copy_count; i++) {
        const struct copy *copy = copies + i;
        if (copy->reply != reply)
            continue;
        if (copy->start + copy->length > length || copy->loop >= loop_count ||
            copy->to + copy->length > loop[copy->loop].length)
            refuse("a copy reaches beyond its PDU");
        memcpy(into->loop[copy->loop].data + copy->to, from->input + copy->start, copy->length);
    }
}

static struct bytes with_call_id(const struct bytes *pdus, uint32_t call_id)
{
    struct bytes made = { malloc(pdus->length), pdus->length };
    if (!made.data)
        die("malloc");
    memcpy(made.data, pdus->data, pdus->length);
    for (size_t at = 0; at < made.length; at += fragment_length(made.data + at))
        memcpy(made.data + at + CALL_ID_AT, &call_id, sizeof call_id);
    return made;
}

static void call_once(struct connection *on, struct call *into, unsigned which)
{
    write_all(on->socket, once[which].data, once[which].length);
    size_t length = await_answer(on);
    if (on->input[TYPE_AT] == 3 || on->input[TYPE_AT] == 13)
        refuse("a fault or a bind_nak before the loop");
    fill_in(on, into, which, length);
    on->held = 0;
}

static void start(struct connection *made, int port)
{
    made->socket = connected_to(port);
    for (unsigned each = 0; each < window; each++) {
        for (unsigned i = 0; i < loop_count; i++)
            made->calls[each].loop[i] = with_call_id(loop + i, FIRST_CALL_ID + each);
        for (unsigned i = each ? 1 : 0; i < once_count; i++)
            call_once(made, made->calls + each, i);
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

static void queue_output(struct connection *on, const struct bytes *pdus)
{
    if (on->output_length + pdus->length > on->output_room) {
        on->output_room = 2 * (on->output_length + pdus->length);
        on->output = realloc(on->output, on->output_room);
        if (!on->output)
            die("realloc");
    }
    memcpy(on->output + on->output_length, pdus->data, pdus->length);
    on->output_length += pdus->length;
}

static uint64_t *stream_time(struct connection *on, const uint8_t *pdu)
{
    uint16_t low;
    memcpy(&low, pdu + CALL_ID_AT, sizeof low);
    return on->stream_sent_at + low;
}

static void call(struct connection *on, struct call *next)
{
    if (on->stream.length) {
        struct bytes request = next_of_stream(on);
        exhausted |= !request.length;
        if (request.length)
            *stream_time(on, request.data) = now();
        queue_output(on, &request);
        return;
    }
    next->sent_at = now();
    queue_output(on, next->loop + next->next);
    next->next = (next->next + 1) % loop_count;
}

static void flush(struct connection *to)
{
    write_all(to->socket, to->output, to->output_length);
    to->output_length = 0;
}

/* Which call an answer is for; those of streams have nothing but a time. */
static struct call *answered(struct connection *from, const uint8_t *answer)
{
    uint32_t call_id;
    memcpy(&call_id, answer + CALL_ID_AT, sizeof call_id);
    if (from->stream.length)
        return from->calls;
    if (call_id - FIRST_CALL_ID >= window)
        refuse("an answer to no call");
    return from->calls + (call_id - FIRST_CALL_ID);
}

static void check(const uint8_t *answer, size_t length)
{
    if (answer[TYPE_AT] != PDU_RESPONSE)
        refuse("an answer that is not a response");
    if (length < tail.length || memcmp(answer + length - tail.length, tail.data, tail.length))
        refuse("an answer that does not end as it must");
}

static void take_answers(struct connection *from)
{
    size_t at = 0, length;
    read_some(from);
    while ((length = whole_answer(from, at))) {
        struct call *call_of = answered(from, from->input + at);
        check(from->input + at, length);
        sample(from->stream.length ? *stream_time(from, from->input + at) : call_of->sent_at);
        call(from, call_of);
        at += length;
    }
    from->held -= at;
    memmove(from->input, from->input + at, from->held);
    flush(from);
}

static double run_until(int epoll, struct connection *all, uint64_t end)
{
    struct epoll_event events[EVENTS];
    uint64_t began = now(), time = began;
    while (time < end && !exhausted && !enough()) {
        int count = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < count; i++)
            take_answers(all + events[i].data.u32);
        time = now();
    }
    return (time - began) / 1e9;
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
    if (!all)
        die("calloc");
    make_samples();
    int epoll = epoll_create1(0);
    for (unsigned i = 0; i < connection_count; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };
        all[i].calls = calloc(window, sizeof *all[i].calls);
        if (!all[i].calls)
            die("calloc");
        if (stream_count) {
            all[i].socket = streams[i].socket;
            all[i].stream = streams[i].pdus;
            all[i].stream_sent_at = calloc(STREAM_CALLS, sizeof *all[i].stream_sent_at);
            if (!all[i].stream_sent_at)
                die("calloc");
        } else {
            start(all + i, atoi(arguments[1]));
        }
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].socket, &event);
    }
    for (unsigned i = 0; i < connection_count; i++) {
        for (unsigned each = 0; each < window; each++)
            call(all + i, all[i].calls + each);
        flush(all + i);
    }
    run_until(epoll, all, now() + atof(arguments[3]) * 1e9);
    measured = 1;
    report(run_until(epoll, all, now() + atof(arguments[4]) * 1e9));
    return 0;
}
