/* Records what a process writes and syncs under one directory, for tests of crashes.
 *
 * Preloaded (LD_PRELOAD) into the process under test. RECORDER_DIRECTORY is the directory,
 * RECORDER_LOG the file to which events are appended, in the order of their effects. Several
 * processes, one after another, may append to the same log.
 *
 * Event: u8 kind, i32 descriptor, u64 offset, u32 length, u32 length, then both byte strings.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
    START = 'S', OPEN = 'o', CLOSE = 'c', WRITE = 'w', TRUNCATE = 't', SYNC_BEGIN = 'b',
    SYNC_END = 'e', RENAME = 'r', UNLINK = 'u', LINK = 'l', MAKE_DIRECTORY = 'm',
    REMOVE_DIRECTORY = 'd',
};

#define DESCRIPTORS 65536

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char directory[PATH_MAX];
static int log_descriptor = -1;
static unsigned char watched[DESCRIPTORS];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void put(const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t written = syscall(SYS_write, log_descriptor, at, length);
        if (written < 0) {
            if (errno == EINTR)
                continue;
            abort();
        }
        at += written;
        length -= written;
    }
}

static void record(enum kind kind, int descriptor, uint64_t offset, const void *first,
                   uint32_t first_length, const void *second, uint32_t second_length)
{
    unsigned char header[21];
    header[0] = kind;
    memcpy(header + 1, &descriptor, 4);
    memcpy(header + 5, &offset, 8);
    memcpy(header + 13, &first_length, 4);
    memcpy(header + 17, &second_length, 4);
    put(header, sizeof header);
    put(first, first_length);
    put(second, second_length);
}

static void record_path(enum kind kind, int descriptor, uint64_t number, const char *path)
{
    record(kind, descriptor, number, path, strlen(path), "", 0);
}

__attribute__((constructor)) static void start(void)
{
    const char *root = getenv("RECORDER_DIRECTORY"), *log = getenv("RECORDER_LOG");
    if (root == NULL || log == NULL || realpath(root, directory) == NULL)
        return;
    log_descriptor = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                             0600);
    if (log_descriptor < 0)
        abort();
    record(START, getpid(), 0, directory, strlen(directory), "", 0);
}

static int is_inside(const char *path)
{
    size_t length = strlen(directory);
    return log_descriptor >= 0 && strncmp(path, directory, length) == 0 &&
           (path[length] == '/' || path[length] == 0);
}

static int is_watched(int descriptor)
{
    return log_descriptor >= 0 && descriptor >= 0 && descriptor < DESCRIPTORS &&
           watched[descriptor];
}

static int opened(int descriptor, const char *path, int flags)
{
    if (descriptor >= 0 && descriptor < DESCRIPTORS && is_inside(path)) {
        watched[descriptor] = 1;
        record_path(OPEN, descriptor, flags, path);
    }
    return descriptor;
}

static int open_with(int folder, const char *path, int flags, mode_t mode)
{
    if (!is_inside(path))
        return syscall(SYS_openat, folder, path, flags, mode);
    pthread_mutex_lock(&mutex);
    int descriptor = opened(syscall(SYS_openat, folder, path, flags, mode), path, flags);
    pthread_mutex_unlock(&mutex);
    return descriptor;
}

#define MODE(flags)                                   \
    mode_t mode = 0;                                  \
    if ((flags) & (O_CREAT | O_TMPFILE)) {            \
        va_list arguments;                            \
        va_start(arguments, flags);                   \
        mode = va_arg(arguments, mode_t);             \
        va_end(arguments);                            \
    }

int open(const char *path, int flags, ...)
{
    MODE(flags)
    return open_with(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE(flags)
    return open_with(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    MODE(flags)
    return open_with(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    MODE(flags)
    return open_with(folder, path, flags, mode);
}

int close(int descriptor)
{
    if (!is_watched(descriptor))
        return REAL(close)(descriptor);
    pthread_mutex_lock(&mutex);
    watched[descriptor] = 0;
    record(CLOSE, descriptor, 0, "", 0, "", 0);
    int result = REAL(close)(descriptor);
    pthread_mutex_unlock(&mutex);
    return result;
}

static ssize_t write_at(int descriptor, const void *bytes, size_t length, off_t offset, int seek)
{
    pthread_mutex_lock(&mutex);
    ssize_t written = seek ? syscall(SYS_write, descriptor, bytes, length)
                           : syscall(SYS_pwrite64, descriptor, bytes, length, offset);
    if (written > 0) {
        off_t end = seek ? lseek(descriptor, 0, SEEK_CUR) : offset + written;
        record(WRITE, descriptor, end - written, bytes, written, "", 0);
    }
    pthread_mutex_unlock(&mutex);
    return written;
}

ssize_t write(int descriptor, const void *bytes, size_t length)
{
    if (!is_watched(descriptor))
        return REAL(write)(descriptor, bytes, length);
    return write_at(descriptor, bytes, length, 0, 1);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset)
{
    if (!is_watched(descriptor))
        return REAL(pwrite)(descriptor, bytes, length, offset);
    return write_at(descriptor, bytes, length, offset, 0);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset)
{
    if (!is_watched(descriptor))
        return REAL(pwrite64)(descriptor, bytes, length, offset);
    return write_at(descriptor, bytes, length, offset, 0);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count)
{
    if (!is_watched(descriptor))
        return REAL(writev)(descriptor, parts, count);
    ssize_t total = 0;
    for (int part = 0; part < count; part++) {
        ssize_t written = write_at(descriptor, parts[part].iov_base, parts[part].iov_len, 0, 1);
        if (written < 0)
            return total ? total : written;
        total += written;
        if ((size_t)written < parts[part].iov_len)
            break;
    }
    return total;
}

static int truncate_to(int descriptor, off_t length)
{
    pthread_mutex_lock(&mutex);
    int result = syscall(SYS_ftruncate, descriptor, length);
    if (result == 0 && is_watched(descriptor))
        record(TRUNCATE, descriptor, length, "", 0, "", 0);
    pthread_mutex_unlock(&mutex);
    return result;
}

int ftruncate(int descriptor, off_t length)
{
    return truncate_to(descriptor, length);
}

int ftruncate64(int descriptor, off64_t length)
{
    return truncate_to(descriptor, length);
}

/* Not under the mutex: writes may go on meanwhile. A number connects begin and end. */
static int sync_with(long call, int descriptor)
{
    static uint64_t syncs;
    if (!is_watched(descriptor))
        return syscall(call, descriptor);
    pthread_mutex_lock(&mutex);
    uint64_t number = ++syncs;
    record(SYNC_BEGIN, descriptor, number, "", 0, "", 0);
    pthread_mutex_unlock(&mutex);
    int result = syscall(call, descriptor);
    if (result == 0) {
        pthread_mutex_lock(&mutex);
        record(SYNC_END, descriptor, number, "", 0, "", 0);
        pthread_mutex_unlock(&mutex);
    }
    return result;
}

int fsync(int descriptor)
{
    return sync_with(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    return sync_with(SYS_fdatasync, descriptor);
}

int rename(const char *from, const char *to)
{
    pthread_mutex_lock(&mutex);
    int result = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0 && is_inside(to))
        record(RENAME, -1, 0, from, strlen(from), to, strlen(to));
    pthread_mutex_unlock(&mutex);
    return result;
}

int link(const char *from, const char *to)
{
    pthread_mutex_lock(&mutex);
    int result = syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0 && is_inside(to))
        record(LINK, -1, 0, from, strlen(from), to, strlen(to));
    pthread_mutex_unlock(&mutex);
    return result;
}

static int change(enum kind kind, long number, const char *path, int argument)
{
    pthread_mutex_lock(&mutex);
    int result = syscall(number, AT_FDCWD, path, argument);
    if (result == 0 && is_inside(path))
        record_path(kind, -1, 0, path);
    pthread_mutex_unlock(&mutex);
    return result;
}

int unlink(const char *path)
{
    return change(UNLINK, SYS_unlinkat, path, 0);
}

int unlinkat(int folder, const char *path, int flags)
{
    if (folder != AT_FDCWD && path[0] != '/')
        return syscall(SYS_unlinkat, folder, path, flags);
    return change(flags ? REMOVE_DIRECTORY : UNLINK, SYS_unlinkat, path, flags);
}

int rmdir(const char *path)
{
    return change(REMOVE_DIRECTORY, SYS_unlinkat, path, AT_REMOVEDIR);
}

int mkdir(const char *path, mode_t mode)
{
    return change(MAKE_DIRECTORY, SYS_mkdirat, path, mode);
}
