/* A wall clock that is off by as many seconds as the file RPCQM_TEST_SHIFT says, for LD_PRELOAD.
 * The file is read again once a second; clocks that nobody can set go on as they are. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int (*clock_function)(clockid_t, struct timespec *);

static clock_function real_clock(void)
{
    static clock_function found;
    if (!found)
        found = (clock_function)dlsym(RTLD_NEXT, "clock_gettime");
    return found;
}

static long shift(void)
{
    static long seconds;
    static time_t looked = -1;
    struct timespec now;
    real_clock()(CLOCK_MONOTONIC, &now);
    if (now.tv_sec == looked)
        return seconds;
    looked = now.tv_sec;
    const char *path = getenv("RPCQM_TEST_SHIFT");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return seconds;
    char text[32] = {0};
    if (read(file, text, sizeof text - 1) > 0)
        seconds = strtol(text, NULL, 10);
    close(file);
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *told)
{
    int status = real_clock()(clock, told);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        told->tv_sec += shift();
    return status;
}

int gettimeofday(struct timeval *told, void *zone)
{
    struct timespec now;
    (void)zone;
    int status = clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return status;
}

time_t time(time_t *told)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told)
        *told = now.tv_sec;
    return now.tv_sec;
}
