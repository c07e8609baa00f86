/* A disk that fails: writes or syncs of the files in one directory give EIO, for tests.
 *
 * Preloaded (LD_PRELOAD) into the process under test. FAILING_DIRECTORY is the directory; while
 * the file that FAILING_SYNC names is there its syncs fail, and writes with FAILING_WRITE. A write
 * that fails has written the first half: what a disk leaves behind is anybody's guess.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_inside(int descriptor)
{
    char link[64], path[4096];
    const char *directory = getenv("FAILING_DIRECTORY");
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return directory != NULL && length > 0 && strncmp(path, directory, strlen(directory)) == 0;
}

static int fails(const char *variable, int descriptor)
{
    const char *trigger = getenv(variable);
    return trigger != NULL && access(trigger, F_OK) == 0 && is_inside(descriptor);
}

ssize_t write(int descriptor, const void *bytes, size_t length)
{
    if (!fails("FAILING_WRITE", descriptor))
        return syscall(SYS_write, descriptor, bytes, length);
    syscall(SYS_write, descriptor, bytes, length / 2);
    errno = EIO;
    return -1;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset)
{
    if (!fails("FAILING_WRITE", descriptor))
        return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
    syscall(SYS_pwrite64, descriptor, bytes, length / 2, offset);
    errno = EIO;
    return -1;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset)
{
    return pwrite(descriptor, bytes, length, offset);
}

static int sync_with(long call, int descriptor)
{
    if (!fails("FAILING_SYNC", descriptor))
        return syscall(call, descriptor);
    errno = EIO;
    return -1;
}

int fsync(int descriptor)
{
    return sync_with(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    return sync_with(SYS_fdatasync, descriptor);
}
