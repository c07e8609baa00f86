/*
 * A sender that speaks [MS-MQQB]: sessions to a queue manager on 127.0.0.1, recoverable messages as
 * fast as the windows let them out, each one counted when it is acknowledged as being on the disk.
 *
 * mqqb PORT SESSIONS WARM_UP SECONDS < SCRIPT    prints messages, seconds, p50 and p99 in ns
 *
 * Lines of the script:
 *   establish HEX, parameters HEX     the packets that ask for a session
 *   acknowledge HEX                   a SessionAck, whose numbers are filled in
 *   message HEX                       a message, whose fields are filled in; several are sent in turn
 *   field PACKET OFFSET VALUE         four octets of the last message (PACKET is `message`) or of
 *                                     what establishes a session: its `number` from 1 on, the `previous`
 *                                     number, or the number of the `session`
 *   calls COUNT                       the run ends after so many messages that count, or SECONDS
 */

#include "measure.h"

#include <sys/epoll.h>

enum { ROOM = 1 << 18, EVENTS = 256, MOST_SESSIONS = 256, MOST_FIELDS = 8, MOST_MESSAGES = 256, NUMBERS = 1 << 16 };
enum { BASE_HEADER = 16, SESSION_HEADER = 16, SESSION_ACK = 36, WINDOW = 64, MOST_UNPERSISTED = 4096 };
enum { FLAGS_OF_PACKET = 2, SIZE_OF_PACKET = 8, INTERNAL = 0x08, WITH_SESSION_HEADER = 0x10 };
enum { DELIVERY_AT = 60, DELIVERY = 0x60, WINDOW_OF_PARAMETERS = 30 };

struct field {
    unsigned offset;
    enum { NUMBER, PREVIOUS, SESSION } value;
};

struct packet {
    struct bytes bytes;
    struct field fields[MOST_FIELDS];
    unsigned field_count;
};

struct session {
    int socket;
    uint32_t index, sent, persisted;
    uint16_t acknowledged, received, received_recoverable, window;
    size_t held, output_length;
    uint64_t sent_at[NUMBERS];
    uint8_t input[ROOM], output[ROOM];
};

static struct packet establish, parameters, acknowledge, messages[MOST_MESSAGES];
static unsigned message_count;

static void put(uint8_t *to, uint32_t value, size_t octets)
{
    for (size_t i = 0; i < octets; i++)
        to[i] = value >> 8 * i;
}

static uint32_t get(const uint8_t *from, size_t octets)
{
    uint32_t value = 0;
    for (size_t i = 0; i < octets; i++)
        value |= (uint32_t)from[i] << 8 * i;
    return value;
}

static void read_field(const char *line)
{
    char which[16], value[16];
    unsigned offset;
    if (sscanf(line, "field %15s %u %15s", which, &offset, value) != 3)
        refuse("a field that is not understood");
    if (!message_count && !strcmp(which, "message"))
        refuse("a field of no message");
    struct packet *packet = strcmp(which, "message") ? &establish : messages + message_count - 1;
    if (packet->field_count == MOST_FIELDS || offset + 4 > packet->bytes.length)
        refuse("too many fields, or one beyond its packet");
    packet->fields[packet->field_count++] = (struct field){
        offset, !strcmp(value, "number") ? NUMBER : !strcmp(value, "previous") ? PREVIOUS : SESSION };
}

static void read_line(char *line)
{
    struct { const char *name; struct packet *packet; } packets[] = {
        { "establish ", &establish }, { "parameters ", &parameters },
        { "acknowledge ", &acknowledge },
        { "message ", messages + message_count } };
    line[strcspn(line, "\n")] = 0;
    if (read_wanted(line))
        return;
    if (!strncmp(line, "message ", 8) && message_count++ == MOST_MESSAGES)
        refuse("too many messages");
    for (size_t i = 0; i < sizeof packets / sizeof *packets; i++)
        if (!strncmp(line, packets[i].name, strlen(packets[i].name))) {
            packets[i].packet->bytes = from_hex(line + strlen(packets[i].name));
            return;
        }
    read_field(line);
}

static void flush(struct session *to)
{
    write_all(to->socket, to->output, to->output_length);
    to->output_length = 0;
}

static uint8_t *queue_output(struct session *on, const struct packet *packet)
{
    if (on->output_length + packet->bytes.length > ROOM)
        flush(on);
    uint8_t *made = on->output + on->output_length;
    memcpy(made, packet->bytes.data, packet->bytes.length);
    on->output_length += packet->bytes.length;
    for (unsigned i = 0; i < packet->field_count; i++) {
        const struct field *field = packet->fields + i;
        uint32_t values[] = { on->sent, on->sent - 1, on->index };
        put(made + field->offset, values[field->value], 4);
    }
    return made;
}

/* The length of the whole packet that starts there, or 0. */
static size_t whole_packet(const uint8_t *packet, size_t held)
{
    if (held < BASE_HEADER)
        return 0;
    unsigned flags = get(packet + FLAGS_OF_PACKET, 2);
    size_t length = get(packet + SIZE_OF_PACKET, 4);
    if (flags & WITH_SESSION_HEADER && !(flags & INTERNAL))
        length += SESSION_HEADER;
    if (length < BASE_HEADER || length > ROOM)
        refuse("a packet of a wrong size");
    return held < length ? 0 : length;
}

static void read_some(struct session *from)
{
    ssize_t got = read(from->socket, from->input + from->held, ROOM - from->held);
    if (got <= 0)
        refuse("the queue manager closed the session");
    from->held += got;
}

/* Whether this number is on the peer's disk now and was not before. */
static void persist(struct session *of, uint16_t number)
{
    if (of->sent_at[number]) {
        sample(of->sent_at[number]);
        of->sent_at[number] = 0;
        of->persisted++;
    }
}

static void take_session_header(struct session *on, const uint8_t *header)
{
    uint32_t flags = get(header + 4, 4);
    on->acknowledged = get(header, 2);
    on->window = get(header + 12, 2);
    for (unsigned bit = 0; bit < 32; bit++)
        if (flags >> bit & 1)
            persist(on, get(header + 2, 2) + bit);
}

/* Acknowledge what the peer sends, which are acknowledgements of order, as it comes. */
static void take_message(struct session *on, const uint8_t *packet, size_t length)
{
    int recoverable = length > DELIVERY_AT && packet[DELIVERY_AT] & DELIVERY;
    on->received++;
    on->received_recoverable += recoverable;
    uint8_t *header = queue_output(on, &acknowledge) + SESSION_ACK - SESSION_HEADER;
    put(header, on->received, 2);
    put(header + 2, recoverable ? on->received_recoverable : 0, 2);
    put(header + 4, recoverable, 4);
    put(header + 8, on->sent, 2);
    put(header + 10, on->sent, 2);
}

static void take_packet(struct session *on, const uint8_t *packet, size_t length)
{
    unsigned flags = get(packet + FLAGS_OF_PACKET, 2);
    if ((flags & INTERNAL) && length != SESSION_ACK)
        refuse("neither a message nor an acknowledgement");
    if (flags & (INTERNAL | WITH_SESSION_HEADER))
        take_session_header(on, packet + length - SESSION_HEADER);
    if (!(flags & INTERNAL))
        take_message(on, packet, length);
}

static void send_messages(struct session *on)
{
    unsigned window = on->window < WINDOW ? on->window : WINDOW;
    while ((uint16_t)(on->sent - on->acknowledged) < window && on->sent - on->persisted < MOST_UNPERSISTED) {
        on->sent++;
        on->sent_at[on->sent % NUMBERS] = now();
        queue_output(on, messages + on->sent % message_count);
    }
    flush(on);
}

static void take(struct session *from)
{
    size_t at = 0, length;
    read_some(from);
    while ((length = whole_packet(from->input + at, from->held - at))) {
        take_packet(from, from->input + at, length);
        at += length;
    }
    from->held -= at;
    memmove(from->input, from->input + at, from->held);
    send_messages(from);
}

static void ask(struct session *on, const struct packet *packet)
{
    queue_output(on, packet);
    flush(on);
    while (!whole_packet(on->input, on->held))
        read_some(on);
}

static struct session *start(int port, uint32_t index)
{
    struct session *made = calloc(1, sizeof *made);
    if (!made)
        die("calloc");
    made->socket = connected_to(port);
    made->index = index + 1;
    ask(made, &establish);
    made->held = 0;
    ask(made, &parameters);
    made->window = get(made->input + WINDOW_OF_PARAMETERS, 2);
    made->held = 0;
    return made;
}

static double run_until(int epoll, struct session **all, uint64_t end)
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

int main(int count, char **arguments)
{
    static struct session *all[MOST_SESSIONS];
    static char line[1 << 19];
    if (count != 5) {
        fprintf(stderr, "usage: mqqb PORT SESSIONS WARM_UP SECONDS < SCRIPT\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin))
        read_line(line);
    unsigned sessions = atoi(arguments[2]);
    if (!sessions || sessions > MOST_SESSIONS || acknowledge.bytes.length != SESSION_ACK ||
        !message_count)
        refuse("too many sessions, or an incomplete script");
    int epoll = epoll_create1(0);
    make_samples();
    for (unsigned i = 0; i < sessions; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };
        all[i] = start(atoi(arguments[1]), i);
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i]->socket, &event);
    }
    for (unsigned i = 0; i < sessions; i++)
        send_messages(all[i]);
    run_until(epoll, all, now() + atof(arguments[3]) * 1e9);
    measured = 1;
    report(run_until(epoll, all, now() + atof(arguments[4]) * 1e9));
    return 0;
}
