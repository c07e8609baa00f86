/*
 * What the strangers' programs share: the binding, exceptions, format names, lines of JSON.
 * Include it behind a header that widl has made.
 */

#ifndef STRANGER_H
#define STRANGER_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

enum { TYPE_DIRECT = 3, TYPE_SUBQUEUE = 8, SUFFIX_NONE = 0, SUFFIX_SUBQUEUE = 5 };

static __thread jmp_buf *armed;

void *__RPC_USER midl_user_allocate(SIZE_T size)
{
    return calloc(1, size);
}

void __RPC_USER midl_user_free(void *memory)
{
    free(memory);
}

/* mingw's gcc has no __except: an exception ends the armed call by a jump, which unwinds. */
static LONG CALLBACK on_exception(EXCEPTION_POINTERS *raised)
{
    jmp_buf *to = armed;
    DWORD code = raised->ExceptionRecord->ExceptionCode;
    if (!to || code == STATUS_LONGJUMP)
        return EXCEPTION_CONTINUE_SEARCH;
    armed = NULL;
    longjmp(*to, code);
}

/* Run the call; `raised` is the exception's code, or 0. */
#define GUARDED(raised, call)                                                                      \
    do {                                                                                           \
        jmp_buf here;                                                                              \
        if (!((raised) = setjmp(here))) {                                                          \
            armed = &here;                                                                         \
            call;                                                                                  \
        }                                                                                          \
        armed = NULL;                                                                              \
    } while (0)

static void open_line(const char *step, HRESULT result, DWORD exception)
{
    printf("{\"step\": \"%s\", \"result\": %lu, \"exception\": %lu", step, (DWORD)result, exception);
}

static void close_line(void)
{
    printf("}\n");
    fflush(stdout);
}

static void report(const char *step, HRESULT result, DWORD exception)
{
    open_line(step, result, exception);
    close_line();
}

static MQ_QUEUE_FORMAT format_name(const char *text)
{
    static wchar_t wide[8][256];
    static unsigned used;
    wchar_t *name = wide[used++ % 8];
    MultiByteToWideChar(CP_UTF8, 0, text, -1, name, 256);
    MQ_QUEUE_FORMAT format = { 0 };
    format.m_qft = wcschr(name, ';') ? TYPE_SUBQUEUE : TYPE_DIRECT;
    format.m_SuffixAndFlags = format.m_qft == TYPE_SUBQUEUE ? SUFFIX_SUBQUEUE : SUFFIX_NONE;
    format.m_pDirectID = name;
    return format;
}

static void authenticate(DWORD level, DWORD provider, char **credentials)
{
    static SEC_WINNT_AUTH_IDENTITY_A identity;
    identity.User = (unsigned char *)credentials[0];
    identity.UserLength = strlen(credentials[0]);
    identity.Password = (unsigned char *)credentials[1];
    identity.PasswordLength = strlen(credentials[1]);
    identity.Domain = (unsigned char *)credentials[2];
    identity.DomainLength = strlen(credentials[2]);
    identity.Flags = SEC_WINNT_AUTH_IDENTITY_ANSI;
    report("authenticate", 0, RpcBindingSetAuthInfoA(rpcqm_binding, NULL, level,
                                                     provider, &identity, RPC_C_AUTHZ_NONE));
}

static void bind_to(char *host)
{
    unsigned char *text;
    RPC_STATUS status = RpcStringBindingComposeA(NULL, (unsigned char *)"ncacn_ip_tcp",
                                                 (unsigned char *)host, NULL, NULL, &text);
    if (!status)
        status = RpcBindingFromStringBindingA(text, &rpcqm_binding);
    report("binding", 0, status);
}

#endif
