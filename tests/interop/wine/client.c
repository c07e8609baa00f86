/*
 * A stranger's RemoteRead client: widl's stubs, mingw's compiler, Wine's rpcrt4.
 *
 * client.exe HOST QUEUE EMPTY_QUEUE MISSING_QUEUE LEVEL [USER PASSWORD DOMAIN]
 *
 * The queues are direct format names without "DIRECT="; QUEUE holds at least four messages.
 * LEVEL is the authentication level, 1 for none. One line of JSON is printed for each step:
 * what the method returned, or the exception it raised, and what it gave back.
 */

#include <windows.h>
#include <rpc.h>

#include "remoteread.h"
#include "stranger.h"

enum { RECEIVE_ACCESS = 1, MOVE_ACCESS = 4, DENY_NONE = 0, NACK = 1, ACK = 2, WHOLE = 1 << 20 };
enum { FLAGS_AT = 2, PRIORITY_MASK = 7, IDENTIFIER_BITS = 56, WAITER = 77, PATIENCE = 10000, PAUSE = 20 };

#define ACTION_RECEIVE 0x00000000
#define ACTION_PEEK_CURRENT 0x80000000
#define ACTION_PEEK_NEXT 0x80000001
#define LOOKUP_PEEK_CURRENT 0x40000010
#define LOOKUP_PEEK_NEXT 0x40000011
#define LOOKUP_PEEK_PREV 0x40000012
#define LOOKUP_RECEIVE_CURRENT 0x40000020

typedef QUEUE_CONTEXT_HANDLE_SERIALIZE queue_handle;

/* What one R_StartReceive gave back. */
struct received {
    HRESULT result;
    DWORD exception;
    DWORD arrived, count;
    ULONGLONG sequence;
    SectionBuffer *sections;
};

static void report_received(const char *step, const struct received *received)
{
    open_line(step, received->result, received->exception);
    printf(", \"arrived\": %lu, \"sequence\": %llu, \"sections\": [", received->arrived,
           received->sequence);
    for (DWORD i = 0; received->sections && i < received->count; i++) {
        const SectionBuffer *section = received->sections + i;
        printf("%s{\"type\": %d, \"allocated\": %lu, \"bytes\": \"", i ? ", " : "",
               section->SectionBufferType, section->SectionSizeAlloc);
        for (DWORD at = 0; at < section->SectionSize; at++)
            printf("%02x", section->pSectionBuffer[at]);
        printf("\"}");
    }
    printf("]");
    close_line();
}

static struct received start_receive(queue_handle queue, ULONGLONG lookup, DWORD cursor, DWORD action,
                                     DWORD timeout, DWORD request, DWORD most)
{
    struct received received = { 0 };
    HRESULT volatile result = 0;
    GUARDED(received.exception,
            result = R_StartReceive(queue, lookup, cursor, action, timeout, request, most, WHOLE,
                                    &received.arrived, &received.sequence, &received.count,
                                    &received.sections));
    received.result = result;
    return received;
}

static struct received read_step(const char *step, queue_handle queue, ULONGLONG lookup, DWORD cursor,
                                 DWORD action, DWORD request)
{
    struct received received = start_receive(queue, lookup, cursor, action, 0, request, WHOLE);
    report_received(step, &received);
    return received;
}

/* The client rebuilds the identifier: its high byte comes from the packet's priority. */
static ULONGLONG lookup_identifier(const struct received *received)
{
    if (!received->sections || received->sections->SectionSize <= FLAGS_AT)
        return 0;
    ULONGLONG priority = received->sections->pSectionBuffer[FLAGS_AT] & PRIORITY_MASK;
    return 7 - priority << IDENTIFIER_BITS | received->sequence;
}

static queue_handle open_queue(const char *step, const char *name)
{
    static GUID client = { 0x52706351, 0x6d00, 0x4000, { 0x80 } };
    MQ_QUEUE_FORMAT format = format_name(name);
    queue_handle volatile queue = NULL;
    DWORD raised;
    GUARDED(raised, R_OpenQueue(&format, RECEIVE_ACCESS, DENY_NONE, &client, 1, 6, 1, 7601, 1,
                                (queue_handle *)&queue));
    open_line(step, 0, raised);
    printf(", \"opened\": %s", queue ? "true" : "false");
    close_line();
    return queue;
}

static void close_queue(const char *step, queue_handle queue)
{
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = R_CloseQueue(&queue));
    open_line(step, result, raised);
    printf(", \"closed\": %s", queue ? "false" : "true");
    close_line();
}

static void end_receive(const char *step, queue_handle queue, DWORD acknowledge, DWORD request)
{
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = R_EndReceive(queue, acknowledge, request));
    report(step, result, raised);
}

static void server_port(void)
{
    DWORD volatile port = 0;
    DWORD raised;
    GUARDED(raised, port = R_GetServerPort());
    open_line("server port", 0, raised);
    printf(", \"port\": %lu", port);
    close_line();
}

static void peeks(queue_handle queue)
{
    struct received first = read_step("peek", queue, 0, 0, ACTION_PEEK_CURRENT, 1);
    ULONGLONG identifier = lookup_identifier(&first);
    read_step("lookup current", queue, identifier, 0, LOOKUP_PEEK_CURRENT, 2);
    struct received second = read_step("lookup next", queue, identifier, 0, LOOKUP_PEEK_NEXT, 3);
    read_step("lookup previous", queue, lookup_identifier(&second), 0, LOOKUP_PEEK_PREV, 4);
    read_step("lookup before the first", queue, identifier, 0, LOOKUP_PEEK_PREV, 5);
    struct received part = start_receive(queue, 0, 0, ACTION_PEEK_CURRENT, 0, 6, 5);
    report_received("peek five bytes", &part);
}

static void cursor(queue_handle queue)
{
    HRESULT volatile result = 0;
    DWORD raised, cursor = 0;
    GUARDED(raised, result = R_CreateCursor(queue, &cursor));
    open_line("create cursor", result, raised);
    printf(", \"cursor\": %lu", cursor);
    close_line();
    read_step("cursor next too early", queue, 0, cursor, ACTION_PEEK_NEXT, 10);
    read_step("cursor current", queue, 0, cursor, ACTION_PEEK_CURRENT, 11);
    read_step("cursor next", queue, 0, cursor, ACTION_PEEK_NEXT, 12);
    GUARDED(raised, result = R_CloseCursor(queue, cursor));
    report("close cursor", result, raised);
    GUARDED(raised, result = R_CloseCursor(queue, cursor));
    report("close cursor again", result, raised);
}

static void receives(queue_handle queue)
{
    read_step("receive", queue, 0, 0, ACTION_RECEIVE, 20);
    end_receive("end with nack", queue, NACK, 20);
    read_step("receive again", queue, 0, 0, ACTION_RECEIVE, 21);
    end_receive("end with ack", queue, ACK, 21);
    end_receive("end twice", queue, ACK, 21);
    struct received next = read_step("peek the next", queue, 0, 0, ACTION_PEEK_CURRENT, 22);
    read_step("receive by lookup", queue, lookup_identifier(&next), 0, LOOKUP_RECEIVE_CURRENT, 23);
    end_receive("end by lookup", queue, ACK, 23);
}

static DWORD WINAPI wait_for_message(void *queue)
{
    struct received received = start_receive(queue, 0, 0, ACTION_RECEIVE, 60000, WAITER, WHOLE);
    report_received("waiting receive", &received);
    return 0;
}

/* The request may not have arrived yet, so that the cancel is repeated until it is known. */
static void cancel(queue_handle queue)
{
    HRESULT volatile result = 0;
    DWORD raised = 0, began = GetTickCount();
    HANDLE waiter = CreateThread(NULL, 0, wait_for_message, queue, 0, NULL);
    do {
        Sleep(PAUSE);
        GUARDED(raised, result = R_CancelReceive(queue, WAITER));
    } while ((raised || result) && GetTickCount() - began < PATIENCE);
    DWORD ended = WaitForSingleObject(waiter, PATIENCE);
    open_line("cancel", result, raised);
    printf(", \"ended\": %s", ended == WAIT_OBJECT_0 ? "true" : "false");
    close_line();
    GUARDED(raised, result = R_CancelReceive(queue, WAITER));
    report("cancel nothing", result, raised);
}

static queue_handle open_for_move(const char *name, ULONGLONG *context)
{
    static GUID client = { 0x52706351, 0x6d00, 0x4000, { 0x80 } };
    MQ_QUEUE_FORMAT format = format_name(name);
    queue_handle volatile queue = NULL;
    DWORD raised;
    GUARDED(raised, R_OpenQueueForMove(&format, MOVE_ACCESS, DENY_NONE, &client, 1, 6, 1, 7601, 1,
                                       context, (queue_handle *)&queue));
    open_line("open for move", 0, raised);
    printf(", \"opened\": %s, \"context\": %s", queue ? "true" : "false", *context ? "true" : "false");
    close_line();
    return queue;
}

static void move(queue_handle queue, const char *name)
{
    char subqueue[256];
    ULONGLONG context = 0;
    MQ_XACTUOW none = { 0 };
    HRESULT volatile result = 0;
    DWORD raised;
    snprintf(subqueue, sizeof subqueue, "%s;later", name);
    queue_handle target = open_for_move(subqueue, &context);
    struct received first = read_step("peek before the move", queue, 0, 0, ACTION_PEEK_CURRENT, 40);
    ULONGLONG identifier = lookup_identifier(&first);
    GUARDED(raised, result = R_MoveMessage(queue, context, identifier, &none));
    report("move", result, raised);
    GUARDED(raised, result = R_MoveMessage(queue, context, identifier, &none));
    report("move what is gone", result, raised);
    queue_handle reader = open_queue("open subqueue", subqueue);
    read_step("peek in the subqueue", reader, 0, 0, ACTION_PEEK_CURRENT, 41);
    close_queue("close subqueue", reader);
    close_queue("close target", target);
}

static void purge(queue_handle queue)
{
    HRESULT volatile result = 0;
    DWORD raised;
    read_step("peek before the purge", queue, 0, 0, ACTION_PEEK_CURRENT, 50);
    GUARDED(raised, result = R_PurgeQueue(queue));
    report("purge", result, raised);
    read_step("peek after the purge", queue, 0, 0, ACTION_PEEK_CURRENT, 51);
}

int main(int count, char **arguments)
{
    if (count != 6 && count != 10) {
        fprintf(stderr, "usage: client HOST QUEUE EMPTY_QUEUE MISSING_QUEUE LEVEL"
                        " [PROVIDER USER PASSWORD DOMAIN]\n");
        return 2;
    }
    AddVectoredExceptionHandler(1, on_exception);
    bind_to(arguments[1]);
    if (count == 10)
        authenticate(atoi(arguments[5]), atoi(arguments[6]), arguments + 7);
    server_port();
    open_queue("open missing", arguments[4]);
    queue_handle queue = open_queue("open", arguments[2]);
    queue_handle empty = open_queue("open empty", arguments[3]);
    if (!queue || !empty)
        return 1;
    peeks(queue);
    cursor(queue);
    receives(queue);
    cancel(empty);
    move(queue, arguments[2]);
    purge(queue);
    close_queue("close empty", empty);
    close_queue("close", queue);
    return 0;
}
