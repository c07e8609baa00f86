/*
 * An HTTP client that posts one request over and over: connections to 127.0.0.1 that are kept, one
 * request outstanding on each, every answer a success.
 *
 * post PORT CONNECTIONS WARM_UP SECONDS < SCRIPT   prints answers, seconds, p50 and p99 in ns
 *
 * Lines of the script:
 *   request HEX      what is posted
 *   number OFFSET    ten decimal digits of it: which request of the run this is, from 1 on
 *   then HEX         what is posted after each answer to it; both answers count
 *   lease OFFSET     22 octets of that: the lease that the answer has told
 *   calls COUNT      the run ends after so many answers that count, or SECONDS
 */

#include "measure.h"

#include <sys/epoll.h>

enum { ROOM = 1 << 16, EVENTS = 256, DIGITS = 10, MOST_NUMBERS = 8, LEASE = 22 };

struct connection {
    int socket, second;
    size_t held;
    uint64_t sent_at;
    char input[ROOM + 1];
};

static struct bytes request, following;
static unsigned numbers[MOST_NUMBERS], number_count, lease;
static unsigned long posted;

static void read_line(char *line)
{
    char *value = strchr(line, ' ');
    line[strcspn(line, "\n")] = 0;
    if (read_wanted(line))
        return;
    if (value && !strncmp(line, "request ", 8))
        request = from_hex(value + 1);
    else if (value && !strncmp(line, "then ", 5))
        following = from_hex(value + 1);
    else if (value && !strncmp(line, "lease ", 6))
        lease = atoi(value);
    else if (value && !strncmp(line, "number ", 7) && number_count < MOST_NUMBERS)
        numbers[number_count++] = atoi(value);
    else
        refuse("a script line that is not understood");
}

static void post(struct connection *on)
{
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%0*lu", DIGITS, ++posted % 10000000000ul);
    for (unsigned i = 0; i < number_count; i++)
        memcpy(request.data + numbers[i], digits, DIGITS);
    on->sent_at = now();
    write_all(on->socket, request.data, request.length);
}

/* After the answer to a request, what it has asked for; the lease is in what has come. */
static void post_following(struct connection *on)
{
    static const char name[] = "\"lease\":\"";
    char *told = strstr(on->input, name);
    if (!told)
        refuse("an answer without a lease");
    memcpy(following.data + lease, told + sizeof name - 1, LEASE);
    on->sent_at = now();
    write_all(on->socket, following.data, following.length);
}

/* The length of the whole answer that has come, or 0. */
static size_t whole_answer(struct connection *from)
{
    from->input[from->held] = 0;
    char *end = strstr(from->input, "\r\n\r\n");
    if (!end)
        return 0;
    if (!strncmp(from->input, "HTTP/1.1 204 ", 13))
        return end + 4 - from->input;
    char *length = strcasestr(from->input, "\r\ncontent-length:");
    if (!length || length > end)
        refuse("an answer without its length");
    size_t whole = end + 4 - from->input + strtoul(length + 17, NULL, 10);
    return from->held < whole ? 0 : whole;
}

static void take_answer(struct connection *from)
{
    ssize_t got = read(from->socket, from->input + from->held, ROOM - from->held);
    if (got <= 0)
        refuse("the server closed the connection, or its answer is too long");
    from->held += got;
    size_t length = whole_answer(from);
    if (!length)
        return;
    if (strncmp(from->input, "HTTP/1.1 20", 11) || from->held != length)
        refuse(from->input);
    from->held = 0;
    sample(from->sent_at);
    from->second = following.length && !from->second;
    if (from->second)
        post_following(from);
    else
        post(from);
}

static double run_until(int epoll, struct connection *all, uint64_t end)
{
    struct epoll_event events[EVENTS];
    uint64_t began = now(), time = began;
    while (time < end && !enough()) {
        int count = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < count; i++)
            take_answer(all + events[i].data.u32);
        time = now();
    }
    return (time - began) / 1e9;
}

int main(int count, char **arguments)
{
    static char line[1 << 19];
    if (count != 5) {
        fprintf(stderr, "usage: post PORT CONNECTIONS WARM_UP SECONDS < SCRIPT\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin))
        read_line(line);
    if (!request.length)
        refuse("a script without a request");
    unsigned connection_count = atoi(arguments[2]);
    struct connection *all = calloc(connection_count, sizeof *all);
    if (!all)
        die("calloc");
    make_samples();
    int epoll = epoll_create1(0);
    for (unsigned i = 0; i < connection_count; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };
        all[i].socket = connected_to(atoi(arguments[1]));
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].socket, &event);
    }
    for (unsigned i = 0; i < connection_count; i++)
        post(all + i);
    run_until(epoll, all, now() + atof(arguments[3]) * 1e9);
    measured = 1;
    report(run_until(epoll, all, now() + atof(arguments[4]) * 1e9));
    return 0;
}
