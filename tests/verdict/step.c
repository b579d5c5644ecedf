// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

/* A wall clock of one program that is stepped while it runs, for LD_PRELOAD. The host's clock stays.
 *
 * The file named by VERDICT_STEP holds a 64-bit number of nanoseconds. While it is 0, all is as it is.
 * Once it changes, everything by which the program can see the wall clock is shifted: clock_gettime,
 * gettimeofday, the kernel's receive stamps, and a timer that asked to be told of steps is told.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shared;
static int64_t told;
static int watch = -1;

static int64_t shift(void) {
    if (!shared) {
        static int64_t nothing;
        const char *path = getenv("VERDICT_STEP");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *page = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        shared = page == MAP_FAILED ? &nothing : page;
    }
    return *shared;
}

static void add(struct timespec *time, int64_t nanoseconds) {
    int64_t sum = time->tv_sec * 1000000000LL + time->tv_nsec + nanoseconds;
    time->tv_sec = sum / 1000000000LL;
    time->tv_nsec = sum % 1000000000LL;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int done = syscall(SYS_clock_gettime, clock, time);
    if (!done && clock == CLOCK_REALTIME) add(time, shift());
    return done;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

static void restamp(struct msghdr *head) {
    struct cmsghdr *one = head->msg_controllen ? CMSG_FIRSTHDR(head) : NULL;
    for (; one; one = CMSG_NXTHDR(head, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(one), sizeof time);
            add(&time, shift());
            memcpy(CMSG_DATA(one), &time, sizeof time);
        }
}

int recvmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout) {
    int got = syscall(SYS_recvmmsg, socket, messages, count, flags, timeout);
    for (int index = 0; index < got; index++) restamp(&messages[index].msg_hdr);
    return got;
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    ssize_t got = syscall(SYS_recvmsg, socket, message, flags);
    if (got >= 0) restamp(message);
    return got;
}

int timerfd_settime(int timer, int flags, const struct itimerspec *new, struct itimerspec *old) {
    if (flags & TFD_TIMER_CANCEL_ON_SET) {
        watch = timer;
        told = shift();
    }
    return syscall(SYS_timerfd_settime, timer, flags, new, old);
}

/* The kernel makes the timer readable when the clock is set; here it runs out at once. */
static void tell(void) {
    struct itimerspec now = {.it_value = {.tv_nsec = 1}};
    if (watch >= 0 && told != shift()) syscall(SYS_timerfd_settime, watch, TFD_TIMER_ABSTIME, &now, NULL);
}

int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout) {
    tell();
    return syscall(SYS_epoll_pwait, epoll, events, count, timeout, NULL, 8);
}

int epoll_pwait2(int epoll, struct epoll_event *events, int count, const struct timespec *timeout,
                 const sigset_t *mask) {
    tell();
    return syscall(SYS_epoll_pwait2, epoll, events, count, timeout, mask, 8);
}

ssize_t read(int file, void *buffer, size_t size) {
    ssize_t got = syscall(SYS_read, file, buffer, size);
    if (file == watch && told != shift()) {
        told = shift();
        errno = ECANCELED;
        return -1;
    }
    return got;
}
