/*
 * The physical limit: an epoll server that answers every bind and every call with
 * fixed bytes. With a log it first appends each call to a zero-filled file and syncs
 * once for all that one turn of its loop has read.
 *
 * With an opnum only calls of that one are logged; they get an answer of their own.
 *
 * limit BIND_ACK_HEX RESPONSE_HEX [LOG [OPNUM RESPONSE_HEX]]   prints its port on 127.0.0.1
 */

#define _GNU_SOURCE
#include "wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_ROOM = 1 << 17, LOG_LENGTH = 64 << 20, EVENTS = 1024, MOST_CONNECTIONS = 65536 };

struct connection {
    int socket;
    size_t held;
    uint8_t input[READ_ROOM];
    uint8_t *output;
    size_t output_length, output_room;
};

static struct connection *connections[MOST_CONNECTIONS];
static struct bytes bind_ack, response, logged_response;
static int log_file = -1, logged_opnum = -1;
static uint8_t *log_turn;
static size_t log_turn_length, log_turn_room;
static off_t log_end;

static void append(uint8_t **buffer, size_t *length, size_t *room, const void *data, size_t size)
{
    if (*length + size > *room) {
        *room = 2 * (*length + size);
        *buffer = realloc(*buffer, *room);
        if (!*buffer)
            die("realloc");
    }
    memcpy(*buffer + *length, data, size);
    *length += size;
}

static const struct bytes *reply_to(const uint8_t *pdu, int logged)
{
    if (pdu[TYPE_AT] == PDU_BIND)
        return &bind_ack;
    return logged && logged_opnum >= 0 ? &logged_response : &response;
}

static void answer(struct connection *from, const uint8_t *pdu, size_t length)
{
    int logged = log_file >= 0 && pdu[TYPE_AT] != PDU_BIND &&
                 (logged_opnum < 0 || (length > OPNUM_AT && pdu[OPNUM_AT] == logged_opnum));
    const struct bytes *reply = reply_to(pdu, logged);
    if (logged)
        append(&log_turn, &log_turn_length, &log_turn_room, pdu, length);
    if (!(pdu[FLAGS_AT] & PFC_LAST_FRAG))
        return;
    append(&from->output, &from->output_length, &from->output_room, reply->data, reply->length);
    memcpy(from->output + from->output_length - reply->length + CALL_ID_AT, pdu + CALL_ID_AT, 4);
}

static void take_pdus(struct connection *from)
{
    size_t at = 0;
    while (from->held - at >= PDU_HEADER && from->held - at >= fragment_length(from->input + at)) {
        unsigned length = fragment_length(from->input + at);
        answer(from, from->input + at, length);
        at += length;
    }
    memmove(from->input, from->input + at, from->held - at);
    from->held -= at;
}

static int read_some(struct connection *from)
{
    ssize_t got = read(from->socket, from->input + from->held, READ_ROOM - from->held);
    if (got <= 0)
        return 0;
    from->held += got;
    take_pdus(from);
    return 1;
}

static void write_log(void)
{
    if (!log_turn_length)
        return;
    if (log_end + (off_t)log_turn_length > LOG_LENGTH)
        log_end = 0;
    if (pwrite(log_file, log_turn, log_turn_length, log_end) != (ssize_t)log_turn_length)
        die("pwrite");
    if (fdatasync(log_file))
        die("fdatasync");
    log_end += log_turn_length;
    log_turn_length = 0;
}

static void write_answers(struct connection *to)
{
    size_t sent = 0;
    while (sent < to->output_length) {
        ssize_t wrote = write(to->socket, to->output + sent, to->output_length - sent);
        if (wrote < 0)
            break;
        sent += wrote;
    }
    to->output_length = 0;
}

static void open_log(const char *path)
{
    static uint8_t zeros[1 << 20];
    log_file = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (log_file < 0)
        die(path);
    for (off_t at = 0; at < LOG_LENGTH; at += sizeof zeros)
        if (pwrite(log_file, zeros, sizeof zeros, at) != sizeof zeros)
            die("pwrite");
    if (fsync(log_file))
        die("fsync");
}

static int listen_on_loopback(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (void *)&address, size) || listen(listener, 1024))
        die("listen");
    if (getsockname(listener, (void *)&address, &size))
        die("getsockname");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void accept_one(int epoll, int listener)
{
    int one = 1, accepted = accept(listener, NULL, NULL);
    if (accepted < 0 || accepted >= MOST_CONNECTIONS)
        die("accept");
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *made = calloc(1, sizeof *made);
    if (!made)
        die("calloc");
    made->socket = accepted;
    connections[accepted] = made;
    struct epoll_event event = { .events = EPOLLIN, .data.fd = accepted };
    epoll_ctl(epoll, EPOLL_CTL_ADD, accepted, &event);
}

static void forget(struct connection *gone)
{
    connections[gone->socket] = NULL;
    close(gone->socket);
    free(gone->output);
    free(gone);
}

static void turn(int epoll, int listener)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll, events, EVENTS, -1);
    for (int i = 0; i < count; i++) {
        struct connection *ready = connections[events[i].data.fd];
        if (events[i].data.fd == listener)
            accept_one(epoll, listener);
        else if (ready && !read_some(ready))
            forget(ready);
    }
    write_log();
    for (int i = 0; i < count; i++)
        if (connections[events[i].data.fd])
            write_answers(connections[events[i].data.fd]);
}

int main(int count, char **arguments)
{
    if (count < 3) {
        fprintf(stderr, "usage: limit BIND_ACK_HEX RESPONSE_HEX [LOG [OPNUM RESPONSE_HEX]]\n");
        return 2;
    }
    bind_ack = from_hex(arguments[1]);
    response = from_hex(arguments[2]);
    if (count > 3)
        open_log(arguments[3]);
    if (count > 5) {
        logged_opnum = atoi(arguments[4]);
        logged_response = from_hex(arguments[5]);
    }
    int epoll = epoll_create1(0), listener = listen_on_loopback();
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;)
        turn(epoll, listener);
}
