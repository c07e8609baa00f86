/*
 * A stranger's dependent client and remote reader: qmcomm, qmcomm2 and qm2qm by widl's stubs and
 * Wine's rpcrt4.
 *
 * dependent.exe HOST QUEUE TRANSACTIONAL
 *
 * The two are direct format names without "DIRECT="; both queues are empty, everybody may do
 * everything with them, and the second one is transactional.
 * One line of JSON is printed for each step. Bodies end with a null character here.
 */

#include <windows.h>
#include <rpc.h>

#include "qmcomm.h"
#include "qmcomm2.h"
#include "qm2qm.h"
#include "stranger.h"

enum { RECEIVE_ACCESS = 1, SEND_ACCESS = 2, DENY_NONE = 0, NACK = 1, ACK = 2 };
enum { WAITER = 77, PATIENCE = 10000, PAUSE = 20, MOST = 256, ROOM_FOR_TITLE = 64, IP_READ = 1 };

#define ACTION_RECEIVE 0x00000000
#define ACTION_PEEK_CURRENT 0x80000000
#define ACTION_PEEK_NEXT 0x80000001
#define LOOKUP_RECEIVE_CURRENT 0x40000020
#define FOR_EVER 0xFFFFFFFF

/* The highest byte of a lookup identifier of a message of priority 3. */
#define ORDINARY (4ULL << 56)

static GUID myself = { 0x52706351, 0x6d00, 0x4000, { 0x80 } };

/* A queue that is open by qmcomm: its handle, and the number that it is read under. */
struct queue {
    RPC_QUEUE_HANDLE handle;
    DWORD context;
};

static void print_octets(const char *name, const unsigned char *octets, DWORD size)
{
    printf(", \"%s\": \"", name);
    for (DWORD at = 0; octets && at < size; at++)
        printf("%02x", octets[at]);
    printf("\"");
}

static struct queue open_queue(const char *step, const char *name, DWORD access)
{
    struct queue queue = { 0 };
    MQ_QUEUE_FORMAT format = format_name(name);
    HRESULT volatile result = 0;
    DWORD raised, none = 0, remote = 0;
    GUARDED(raised, result = rpc_QMOpenQueueInternal(&format, access, DENY_NONE, 0, &remote, &none,
                                                     &myself, L"STRANGER", &queue.context,
                                                     &queue.handle, 0, 0));
    open_line(step, result, raised);
    printf(", \"opened\": %s, \"elsewhere\": %s", queue.handle ? "true" : "false",
           remote ? "true" : "false");
    close_line();
    return queue;
}

static void close_queue(const char *step, struct queue *queue)
{
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = rpc_ACCloseHandle(&queue->handle));
    open_line(step, result, raised);
    printf(", \"closed\": %s", queue->handle ? "false" : "true");
    close_line();
}

static void send_message(const char *step, struct queue *queue, const char *text,
                         unsigned char priority, MQ_XACTUOW *unit)
{
    CACTransferBufferV2 buffer = { 0 };
    MQ_OBJECTID identifier = { 0 };
    unsigned char *body = (unsigned char *)text, recoverable = 1;
    WCHAR *title = L"from a stranger";
    HRESULT volatile result = 0;
    DWORD raised, type = 8;
    buffer.old.uTransferType = CACTB_SEND;
    buffer.old.pPriority = &priority;
    buffer.old.pDelivery = &recoverable;
    buffer.old.ppBody = &body;
    buffer.old.ulBodyBufferSizeInBytes = buffer.old.ulAllocBodyBufferInBytes = strlen(text) + 1;
    buffer.old.ppTitle = &title;
    buffer.old.ulTitleBufferSizeInWCHARs = wcslen(title) + 1;
    buffer.old.ulAbsoluteTimeToQueue = buffer.old.ulRelativeTimeToLive = FOR_EVER;
    buffer.old.pulBodyType = &type;
    buffer.old.pUow = unit;
    GUARDED(raised, result = rpc_ACSendMessageEx(queue->handle, &buffer, &identifier));
    open_line(step, result, raised);
    printf(", \"number\": %lu", identifier.Uniquifier);
    close_line();
}

static void receive(const char *step, struct queue *queue, DWORD action, DWORD cursor, DWORD room,
                    MQ_XACTUOW *unit)
{
    CACTransferBufferV2 buffer = { 0 };
    unsigned char octets[MOST] = { 0 }, *body = octets, priority = 0;
    WCHAR text[ROOM_FOR_TITLE] = { 0 }, *title = text;
    HRESULT volatile result = 0;
    DWORD raised, size = 0, type = 0, characters = ROOM_FOR_TITLE;
    /* as strings both are as long as their buffers */
    memset(octets, ' ', room - 1);
    wmemset(text, ' ', ROOM_FOR_TITLE - 1);
    buffer.old.uTransferType = CACTB_RECEIVE;
    buffer.old.Receive.Action = action;
    buffer.old.Receive.Cursor = cursor;
    buffer.old.pPriority = &priority;
    buffer.old.ppBody = &body;
    buffer.old.ulBodyBufferSizeInBytes = buffer.old.ulAllocBodyBufferInBytes = room;
    buffer.old.pBodySize = &size;
    buffer.old.ppTitle = &title;
    buffer.old.ulTitleBufferSizeInWCHARs = characters;
    buffer.old.pulTitleBufferSizeInWCHARs = &characters;
    buffer.old.pulBodyType = &type;
    buffer.old.pUow = unit;
    GUARDED(raised, result = rpc_ACReceiveMessageEx(queue->context, &buffer));
    open_line(step, result, raised);
    printf(", \"size\": %lu, \"type\": %lu, \"priority\": %u, \"label\": \"%ls\"", size, type, priority,
           text);
    print_octets("body", octets, size < room ? size : room);
    close_line();
}

static DWORD create_cursor(struct queue *queue)
{
    CACCreateRemoteCursor made = { 0 };
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = rpc_ACCreateCursorEx(queue->handle, &made));
    open_line("create cursor", result, raised);
    printf(", \"cursor\": %lu", made.hCursor);
    close_line();
    return made.hCursor;
}

static void as_dependent_client(const char *name)
{
    HRESULT volatile result = 0;
    DWORD raised;
    struct queue sending = open_queue("open for sending", name, SEND_ACCESS);
    send_message("send", &sending, "first", 3, NULL);
    send_message("send again", &sending, "second", 3, NULL);
    send_message("send urgently", &sending, "urgent", 6, NULL);
    close_queue("close sending", &sending);
    struct queue reading = open_queue("open for receiving", name, RECEIVE_ACCESS);
    receive("peek", &reading, ACTION_PEEK_CURRENT, 0, MOST, NULL);
    DWORD cursor = create_cursor(&reading);
    receive("cursor current", &reading, ACTION_PEEK_CURRENT, cursor, MOST, NULL);
    receive("cursor next", &reading, ACTION_PEEK_NEXT, cursor, MOST, NULL);
    GUARDED(raised, result = rpc_ACCloseCursor(reading.handle, cursor));
    report("close cursor", result, raised);
    receive("receive too small", &reading, ACTION_RECEIVE, 0, 3, NULL);
    receive("receive", &reading, ACTION_RECEIVE, 0, MOST, NULL);
    close_queue("close reading", &reading);
}

/* An internal transaction: its identifier, and the handle that ends it. */
struct unit {
    MQ_XACTUOW identifier;
    RPC_INT_XACT_HANDLE handle;
};

static struct unit begin(unsigned char number)
{
    struct unit unit = { { { 0x52, number } } };
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = R_QMEnlistInternalTransaction(&unit.identifier, &unit.handle));
    open_line("enlist", result, raised);
    printf(", \"opened\": %s", unit.handle ? "true" : "false");
    close_line();
    return unit;
}

static void finish(const char *step, struct unit *unit,
                   HRESULT(__cdecl *how)(RPC_INT_XACT_HANDLE *))
{
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = how(&unit->handle));
    open_line(step, result, raised);
    printf(", \"closed\": %s", unit->handle ? "false" : "true");
    close_line();
}

static void in_transactions(const char *name)
{
    struct queue sending = open_queue("open transactional", name, SEND_ACCESS);
    struct queue reading = open_queue("open transactional to read", name, RECEIVE_ACCESS);
    struct unit unit = begin(1);
    send_message("send and take back", &sending, "never", 0, &unit.identifier);
    finish("abort sending", &unit, R_QMAbortTransaction);
    unit = begin(2);
    send_message("send in a transaction", &sending, "certain", 0, &unit.identifier);
    receive("peek before the commit", &reading, ACTION_PEEK_CURRENT, 0, MOST, NULL);
    finish("commit sending", &unit, R_QMCommitTransaction);
    unit = begin(3);
    receive("receive and give back", &reading, ACTION_RECEIVE, 0, MOST, &unit.identifier);
    receive("receive what is held", &reading, ACTION_RECEIVE, 0, MOST, NULL);
    finish("abort receiving", &unit, R_QMAbortTransaction);
    unit = begin(4);
    receive("receive in a transaction", &reading, ACTION_RECEIVE, 0, MOST, &unit.identifier);
    finish("commit receiving", &unit, R_QMCommitTransaction);
    receive("receive after the commit", &reading, ACTION_RECEIVE, 0, MOST, NULL);
    close_queue("close transactional", &sending);
    close_queue("close transactional to read", &reading);
}

static void about_queue(const char *name)
{
    WCHAR text[MOST] = { 0 };
    DWORD volatile port = 0;
    DWORD raised, length = MOST;
    HRESULT volatile result = 0;
    struct queue queue = open_queue("open for purging", name, RECEIVE_ACCESS);
    GUARDED(raised, result = rpc_ACHandleToFormatName(queue.handle, length, text, &length));
    open_line("format name", result, raised);
    printf(", \"length\": %lu", length);
    print_octets("text", (unsigned char *)text, wcslen(text) * sizeof(*text));
    close_line();
    GUARDED(raised, result = rpc_ACPurgeQueue(queue.handle));
    report("purge as dependent client", result, raised);
    receive("receive after the purge", &queue, ACTION_RECEIVE, 0, MOST, NULL);
    close_queue("close after the purge", &queue);
    GUARDED(raised, port = R_QMGetRTQMServerPort(0));
    open_line("port of qmcomm", 0, raised);
    printf(", \"port\": %lu", port);
    close_line();
}

/* The numbers of a queue that was opened for a remote reader, and its session. */
struct session {
    PCTX_RRSESSION_HANDLE_TYPE handle;
    DWORD context, descriptor, number;
};

static struct session adopt(const char *name)
{
    struct session session = { 0 };
    PCTX_OPENREMOTE_HANDLE_TYPE opened = NULL;
    MQ_QUEUE_FORMAT format = format_name(name);
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = R_QMOpenRemoteQueue(&opened, &session.context, &format, 0,
                                                 RECEIVE_ACCESS, DENY_NONE, &myself, 0,
                                                 &session.descriptor, &session.number));
    report("open remote", result, raised);
    GUARDED(raised, result = RemoteQMOpenQueue(&session.handle, &myself, 0, session.number,
                                               session.descriptor, session.context));
    open_line("take over", result, raised);
    printf(", \"opened\": %s", session.handle ? "true" : "false");
    close_line();
    GUARDED(raised, R_QMCloseRemoteQueueContext(&opened));
    report("close remote", 0, raised);
    return session;
}

static REMOTEREADDESC description(struct session *session, DWORD action, DWORD request,
                                  DWORD timeout)
{
    REMOTEREADDESC made = { 0 };
    made.hRemoteQueue = made.dwQueue = session->number;
    made.ulAction = action;
    made.ulTimeout = timeout;
    made.dwRequestID = request;
    return made;
}

static void print_read(const char *step, HRESULT result, DWORD raised, void *read,
                       REMOTEREADDESC *made)
{
    open_line(step, result, raised);
    printf(", \"locked\": %s", read ? "true" : "false");
    print_octets("packet", made->lpBuffer, made->dwSize);
}

static PCTX_REMOTEREAD_HANDLE_TYPE start(const char *step, struct session *session, DWORD action,
                                         DWORD request, DWORD timeout)
{
    PCTX_REMOTEREAD_HANDLE_TYPE volatile read = NULL;
    REMOTEREADDESC made = description(session, action, request, timeout);
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = RemoteQMStartReceive((PCTX_REMOTEREAD_HANDLE_TYPE *)&read, &made));
    print_read(step, result, raised, read, &made);
    close_line();
    return read;
}

/* RemoteQMStartReceive2, or with an identifier RemoteQMStartReceiveByLookupId. */
static ULONGLONG start_2(const char *step, struct session *session, DWORD action, DWORD request,
                         ULONGLONG identifier, PCTX_REMOTEREAD_HANDLE_TYPE *read)
{
    REMOTEREADDESC made = description(session, action, request, 0);
    REMOTEREADDESC2 outer = { .pRemoteReadDesc = &made };
    HRESULT volatile result = 0;
    DWORD raised;
    if (identifier)
        GUARDED(raised, result = RemoteQMStartReceiveByLookupId(identifier, read, &outer));
    else
        GUARDED(raised, result = RemoteQMStartReceive2(read, &outer));
    print_read(step, result, raised, *read, &made);
    printf(", \"identifier\": %I64u", outer.SequentialId);
    close_line();
    return outer.SequentialId;
}

static void end(const char *step, PCTX_REMOTEREAD_HANDLE_TYPE read, DWORD acknowledge)
{
    HRESULT volatile result = 0;
    DWORD raised;
    GUARDED(raised, result = RemoteQMEndReceive(&read, acknowledge));
    report(step, result, raised);
}

static void by_identifier(struct session *session)
{
    PCTX_REMOTEREAD_HANDLE_TYPE read = NULL;
    ULONGLONG identifier = start_2("peek for the identifier", session, ACTION_PEEK_CURRENT, 6, 0, &read);
    start_2("receive by identifier", session, LOOKUP_RECEIVE_CURRENT, 7, ORDINARY | identifier, &read);
    end("end by identifier", read, NACK);
}

static void with_cursor(struct session *session)
{
    CACTransferBufferV1 ignored = { 0 };
    REMOTEREADDESC made = description(session, ACTION_PEEK_CURRENT, 8, 0);
    PCTX_REMOTEREAD_HANDLE_TYPE volatile read = NULL;
    HRESULT volatile result = 0;
    DWORD raised;
    ignored.uTransferType = CACTB_CREATECURSOR;
    GUARDED(raised, result = R_QMCreateRemoteCursor(&ignored, session->number, &made.hCursor));
    open_line("create remote cursor", result, raised);
    printf(", \"cursor\": %lu", made.hCursor);
    close_line();
    GUARDED(raised, result = RemoteQMStartReceive((PCTX_REMOTEREAD_HANDLE_TYPE *)&read, &made));
    print_read("peek with remote cursor", result, raised, read, &made);
    close_line();
    for (int again = 0; again < 2; again++) {
        GUARDED(raised, result = RemoteQMCloseCursor(session->number, made.hCursor));
        report(again ? "close remote cursor again" : "close remote cursor", result, raised);
    }
}

static DWORD WINAPI wait_for_message(void *session)
{
    start("waiting receive", session, ACTION_RECEIVE, WAITER, 60000);
    return 0;
}

/* The request may not have arrived yet, so that the cancel is repeated until it is known. */
static void cancel(struct session *session)
{
    HRESULT volatile result = 0;
    DWORD raised = 0, began = GetTickCount();
    HANDLE waiter = CreateThread(NULL, 0, wait_for_message, session, 0, NULL);
    do {
        Sleep(PAUSE);
        GUARDED(raised, result = RemoteQMCancelReceive(session->number, session->number, WAITER));
    } while ((raised || result) && GetTickCount() - began < PATIENCE);
    DWORD ended = WaitForSingleObject(waiter, PATIENCE);
    open_line("cancel", result, raised);
    printf(", \"ended\": %s", ended == WAIT_OBJECT_0 ? "true" : "false");
    close_line();
}

static void as_remote_reader(const char *name)
{
    unsigned char major = 0, minor = 0;
    unsigned short build = 0;
    HRESULT volatile result = 0;
    DWORD volatile port = 0;
    DWORD raised;
    struct session session = adopt(name);
    GUARDED(raised, port = RemoteQMGetQMQMServerPort(IP_READ));
    open_line("port", 0, raised);
    printf(", \"port\": %lu", port);
    close_line();
    GUARDED(raised, RemoteQmGetVersion(&major, &minor, &build));
    open_line("version", 0, raised);
    printf(", \"version\": [%u, %u, %u]", major, minor, build);
    close_line();
    start("remote peek", &session, ACTION_PEEK_CURRENT, 1, 0);
    end("end with nack", start("remote receive", &session, ACTION_RECEIVE, 3, 0), NACK);
    end("end with ack", start("remote receive again", &session, ACTION_RECEIVE, 4, 0), ACK);
    start("peek the rest", &session, ACTION_PEEK_CURRENT, 5, 0);
    by_identifier(&session);
    with_cursor(&session);
    GUARDED(raised, result = RemoteQMPurgeQueue(session.number));
    report("purge", result, raised);
    cancel(&session);
    GUARDED(raised, result = RemoteQMCloseQueue(&session.handle));
    open_line("close session", result, raised);
    printf(", \"closed\": %s", session.handle ? "false" : "true");
    close_line();
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "usage: dependent HOST QUEUE TRANSACTIONAL\n");
        return 2;
    }
    AddVectoredExceptionHandler(1, on_exception);
    bind_to(arguments[1]);
    as_dependent_client(arguments[2]);
    in_transactions(arguments[3]);
    as_remote_reader(arguments[2]);
    about_queue(arguments[2]);
    return 0;
}
